"""The ports on one machine: RocksDB, local sockets, a directory."""

"""From a URL to an answer: DNS, the address guard, libcurl, decoding."""

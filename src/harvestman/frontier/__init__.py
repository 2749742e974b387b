"""What to ask for next: leases, host clocks, the window in RAM, the seen-set."""

def add(v): pass

"""What goes wrong in a way that a message explains."""


class Problem(Exception):
    pass

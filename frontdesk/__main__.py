"""`python -m frontdesk` is the command `frontdesk`."""

from frontdesk.cli import main

main(prog_name="frontdesk")

"""What runs inside the sandbox: a zygote, and the sessions that it forks. Standard library only.

It is started by path (`python -I …/worker/__main__.py`) with whatever interpreter the sandbox has, and must import
nothing of this project from outside this folder. The host may import `output` and `wire` from here.
"""

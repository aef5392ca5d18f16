"""What stands between a sandbox's code and the machine. `bare`: nothing. `hardened`: bubblewrap, probed before use.

An isolation only says how the first process is started (a `Launch`); starting and ending it is `zygote` and `crew`.
"""

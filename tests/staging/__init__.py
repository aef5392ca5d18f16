"""What stands behind tests/stage.py: scripted models, people on mediums, houses in which the gateway runs, journals."""

"""How long a test waits for what must come. Only what never comes takes so long, on a machine many times slower too."""

PATIENCE_SECONDS = 50.0  # less than servers wait for open connections when they end

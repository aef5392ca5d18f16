"""The way out of a sandbox's network: a proxy that lets through what the operator allows, and logs it all."""

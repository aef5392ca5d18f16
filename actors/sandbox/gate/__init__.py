"""The way out of a sandbox's network: a proxy in the host, which lets through what the operator allows and logs it all."""

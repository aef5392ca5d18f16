"""Packages for code in a sandbox, and how the host installs them. Inside they can only be read."""

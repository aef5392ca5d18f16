"""What running code can use of the world outside. Each file makes primitives; the composition root chooses which."""

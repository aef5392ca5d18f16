"""The figures of the product: measured on a real gateway process, beside the least that the machine allows."""

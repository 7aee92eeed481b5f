"""Small real data sets with their converters, and seeded generators of synthetic streams."""

"""Commands about studies: workers, and what a store has."""

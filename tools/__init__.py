"""Tools of the people who work on onlineauto; not part of the package."""

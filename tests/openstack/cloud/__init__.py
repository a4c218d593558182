"""Installs, starts and stops OpenStack's services on loopback. Everything but `seed` needs the standard library only."""

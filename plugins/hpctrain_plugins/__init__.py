"""The technologies that clusters are composed of; each module is one plugin, imported only when chosen."""

"""The technologies that clusters are composed of: a plugin is a module or a folder, imported when chosen."""

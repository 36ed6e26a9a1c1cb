"""One module per object that is kept true; the only verb of a controller is `sync`."""

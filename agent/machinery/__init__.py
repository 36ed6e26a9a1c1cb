"""The engine below the controllers, as client-go has it: it knows no Node, Lease or Pod."""

"""Columns that many Tables share."""

from agent.minicluster.resource import Column

NAME = Column(name="Name", format="name", description="Name of the object, unique within its namespace.")
AGE = Column(name="Age", description="Time since the object was created.")

"""Optional protocols of families: functions with one default, registered for the families that have more."""

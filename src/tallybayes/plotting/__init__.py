"""Pictures. The only folder that imports matplotlib, and only when a picture is asked for."""

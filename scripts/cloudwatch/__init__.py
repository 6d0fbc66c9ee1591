"""CloudWatch's alarms, as far as deploy/alarms.yml uses them: metrics, metric math, and when an alarm rings.

Pure: tests evaluate the alarms of the template over metrics that were really emitted, and the embedded AWS its own.
"""

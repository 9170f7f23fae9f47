"""Java options that make the many short-lived JVMs of a test run start fast.

The first compiler alone takes the tests of Spark's sinks from 108 to 60 seconds of processor time.
"""

QUICK = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# For variables that Spark's launcher reads.
QUICK_OPTIONS = " ".join(QUICK)

# What the sinks of the tests' one Spark session need.
SPARK_PACKAGES = ("delta", "iceberg", "postgresql", "sqlite", "avro")

"""The engine: evidence in Spark. The only package that imports pyspark; everything else asks it."""

"""Live servers of MySQL's protocol: what a plan is applied to. The only importer of pymysql."""

"""What tests of several sources share: one session of Spark and one PostgreSQL server, which take long to start."""

import os
import shutil
import socket
import subprocess
import sys
import time
import warnings

import pytest

# Small queries: what is compiled costs more than what is counted.
SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",  # so that queries are those of the other databases
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A session in this process; its workers find the package where this process does."""
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        pytest.skip("Java, which Spark runs on, is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of PySpark's own, about versions of pandas
        from pyspark.sql import SparkSession

        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        builder = SparkSession.builder.master("local[2]").appName("tests")
        builder = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def spark_connect(tmp_path_factory):
    """A session of Spark Connect, whose server is a process of its own on this machine alone."""
    pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of PySpark's own, about versions of pandas
        try:
            from pyspark.sql.connect.session import SparkSession
        except ImportError:
            pytest.skip("the packages of Spark Connect are not installed: pip install 'pyspark[connect]'")
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        pytest.skip("Java, which Spark runs on, is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("connect")
    settings = SETTINGS | {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    home = os.path.dirname(pyspark.__file__)
    command = [os.path.join(home, "bin", "spark-submit"), "--master", "local[2]"]
    command += [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    paths = {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with open(folder / "log", "w") as log, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of PySpark's own, about versions of pandas
        environment = os.environ | paths | {"SPARK_HOME": home}
        server = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=folder)
        try:
            end = time.monotonic() + 120
            while server.poll() is None and time.monotonic() < end:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.2)
            else:
                pytest.fail(f"the server of Spark Connect did not start: {(folder / 'log').read_text()[-2000:]}")
            session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()
            yield session
            session.stop()
        finally:
            server.terminate()
            server.wait(30)


@pytest.fixture(params=["spark", "spark_connect"], ids=["classic", "connect"])
def any_spark(request):
    """A session of either kind."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def one_postgresql():
    """How to connect to a server of this process's own."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    from tests.unit.data import postgresql

    with postgresql.running() as address:
        yield address


@pytest.fixture
def postgresql_server(one_postgresql):
    """The same, without what other tests left there."""
    import psycopg

    with psycopg.connect(one_postgresql, autocommit=True) as connection:
        connection.execute("SET client_min_messages = warning; DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    return one_postgresql

"""Migrate a Django application in a file that has a queue, forwards and back, and inspect it: FILE."""

import io
import sys
from pathlib import Path

import django
from django.conf import settings
from django.core.management import call_command

Path("shop").mkdir()
Path("shop/__init__.py").touch()
models = Path("shop/models.py")
MODEL = """
from django.db import models

class Order(models.Model):
    text = models.CharField(max_length=20{more})
"""
sys.path.insert(0, ".")
database = {"ENGINE": "django.db.backends.sqlite3", "NAME": sys.argv[1]}
settings.configure(INSTALLED_APPS=["shop"], DATABASES={"default": database}, USE_TZ=True)
models.write_text(MODEL.format(more=""))
django.setup()

call_command("makemigrations", "shop", verbosity=0)
written = "".join(file.read_text() for file in Path("shop/migrations").glob("*.py"))
assert "queue" not in written, written
call_command("migrate", verbosity=0)

# SQLite cannot change a column: Django makes the table anew, beside our triggers.
from django.db import connection  # noqa: E402
from django.db import models as fields  # noqa: E402
from shop.models import Order  # noqa: E402

longer = fields.CharField(max_length=40, null=True)
longer.set_attributes_from_name("text")
with connection.schema_editor() as editor:
    editor.alter_field(Order, Order._meta.get_field("text"), longer, strict=True)

out = io.StringIO()
call_command("inspectdb", stdout=out)
shown = out.getvalue()
ours = [part for part in shown.split("class ") if "db_table = 'ingest_queue" in part or "'membox_queue_" in part]
assert len(ours) > 5, shown
assert all("managed = False" in part for part in ours)

out = io.StringIO()
call_command("inspectdb", "shop_order", stdout=out)
assert "class ShopOrder" in out.getvalue()
assert "queue" not in out.getvalue()

call_command("migrate", "shop", "zero", verbosity=0)
call_command("flush", interactive=False, verbosity=0)

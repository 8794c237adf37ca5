"""A tenant's own ages are rows, one for each retention rule

Revision: platform_0002, after platform_0001

The columns of `tenants` that held them stay for one release. Triggers keep both in step, so that processes of release
0.1.0 and of this one can run side by side.
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = "platform_0002"
down_revision = "platform_0001"
branch_labels = None
depends_on = None

# 36500 days are for ever, as far as we are concerned (`waybill.retention.ages.LONGEST_DAYS`).
AGES = """
CREATE TABLE retention_ages (
    tenant text NOT NULL,
    rule   text NOT NULL,
    days   real NOT NULL,
    PRIMARY KEY (tenant, rule),
    CONSTRAINT retention_ages_days_count CHECK (days >= 0 AND days <= 36500)
)
"""

# Until the triggers are in place, nobody else may write the columns: it would be missing from the rows.
LOCK = "LOCK TABLE tenants IN SHARE ROW EXCLUSIVE MODE"

# Where 0.1.0 says `xml_on_download`, the rule `downloads` has an age: days since the download.
MIGRATE = """
INSERT INTO retention_ages (tenant, rule, days)
SELECT tenants.name, ages.rule, ages.days
  FROM tenants,
       LATERAL (VALUES ('documents', pdf_ttl_days), ('results', xml_ttl_days),
                       ('downloads', CASE WHEN xml_on_download THEN 0 WHEN NOT xml_on_download THEN 36500 END),
                       ('events', events_ttl_days), ('jobs', jobs_ttl_days)) AS ages (rule, days)
 WHERE ages.days IS NOT NULL
"""

# What 0.1.0 writes. Each trigger looks only at what a statement does itself (`pg_trigger_depth`), not at what the other
# one does in answer to it.
COLUMNS_TO_ROWS = (
    """
CREATE FUNCTION retention_ages_follow_tenant() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM retention_ages WHERE tenant = OLD.name;
        RETURN NULL;
    END IF;
    DELETE FROM retention_ages
     WHERE tenant = NEW.name
       AND CASE rule WHEN 'documents' THEN NEW.pdf_ttl_days IS NULL
                     WHEN 'results' THEN NEW.xml_ttl_days IS NULL
                     WHEN 'downloads' THEN NEW.xml_on_download IS NULL
                     WHEN 'events' THEN NEW.events_ttl_days IS NULL
                     WHEN 'jobs' THEN NEW.jobs_ttl_days IS NULL
                     ELSE false END;
    INSERT INTO retention_ages AS known (tenant, rule, days)
    SELECT NEW.name, ages.rule, ages.days
      FROM (VALUES ('documents', NEW.pdf_ttl_days), ('results', NEW.xml_ttl_days),
                   ('downloads', CASE WHEN NEW.xml_on_download THEN 0 WHEN NOT NEW.xml_on_download THEN 36500 END),
                   ('events', NEW.events_ttl_days), ('jobs', NEW.jobs_ttl_days)) AS ages (rule, days)
     WHERE ages.days IS NOT NULL
        ON CONFLICT (tenant, rule) DO UPDATE SET days = excluded.days
        -- An age between never and at once cannot be said in the column: it stays as long as the column says "no".
        WHERE known.days <> excluded.days AND NOT (known.rule = 'downloads' AND known.days > 0 AND excluded.days > 0);
    RETURN NULL;
END $$
""",
    """
CREATE TRIGGER retention_ages_follow_tenant
    AFTER INSERT OR UPDATE OF pdf_ttl_days, xml_ttl_days, xml_on_download, events_ttl_days, jobs_ttl_days OR DELETE
    ON tenants
    FOR EACH ROW WHEN (pg_trigger_depth() = 0)
    EXECUTE FUNCTION retention_ages_follow_tenant()
""",
)

# What 0.1.0 reads. It knows no other age of a downloaded result than "at once": a later one is "not on download".
ROWS_TO_COLUMNS = (
    """
CREATE FUNCTION tenant_follows_retention_age() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    whose text := COALESCE(NEW.tenant, OLD.tenant);
    which text := COALESCE(NEW.rule, OLD.rule);
BEGIN
    IF which NOT IN ('documents', 'results', 'downloads', 'events', 'jobs') THEN
        RETURN NULL;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO tenants (name) VALUES (whose) ON CONFLICT DO NOTHING;
    END IF;
    UPDATE tenants
       SET pdf_ttl_days = CASE which WHEN 'documents' THEN NEW.days ELSE pdf_ttl_days END,
           xml_ttl_days = CASE which WHEN 'results' THEN NEW.days ELSE xml_ttl_days END,
           xml_on_download = CASE which WHEN 'downloads' THEN NEW.days = 0 ELSE xml_on_download END,
           events_ttl_days = CASE which WHEN 'events' THEN NEW.days ELSE events_ttl_days END,
           jobs_ttl_days = CASE which WHEN 'jobs' THEN NEW.days ELSE jobs_ttl_days END
     WHERE name = whose;
    RETURN NULL;
END $$
""",
    """
CREATE TRIGGER tenant_follows_retention_age
    AFTER INSERT OR UPDATE OR DELETE ON retention_ages
    FOR EACH ROW WHEN (pg_trigger_depth() = 0)
    EXECUTE FUNCTION tenant_follows_retention_age()
""",
)


def upgrade() -> None:
    execute(AGES, LOCK, MIGRATE, *COLUMNS_TO_ROWS, *ROWS_TO_COLUMNS)

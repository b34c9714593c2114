#include "server/gateway/audited_script.h"

#include <utility>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "server/statements/session.h"
#include "server/statements/statement_record.h"

namespace sluice::server {

Status AuditedScript::Begins(std::string_view sql, bool plain, Session& session) {
  begun_ = true;
  plain_ = plain;
  use_ = {};
  session.set_use(audit_.is_kept() ? &use_ : nullptr);
  session_role_ = session.catalog().principal().role;
  since_ = clock_.Now();
  dialect_ = session.source().dialect() == "sqlite" ? catalog::Dialect::kSqlite
                                                    : catalog::Dialect::kPostgres;
  ASSIGN_OR_RETURN(running_, audit_.Begins(client_, sql, dialect_));
  return OkStatus();
}

void AuditedScript::Ends(const Status& outcome) {
  if (running_.has_value()) {
    for (std::string& column : use_.columns) {
      column = RecordedColumn(column, dialect_);
    }
    audit_.Ends(*std::exchange(running_, std::nullopt), client_, session_role_, outcome,
                SecondsBetween(since_, clock_.Now()), use_);
  }
}

void AuditedScript::Over(const Status& outcome) {
  Ends(outcome);
  if (!begun_ && !outcome.ok() && !outcome.sqlstate().starts_with("28")) {  // which is a login's
    audit_.Refused(client_, outcome);
  }
}

Status AuditedScript::Header(const Schema& schema) {
  if (plain_) {
    for (const ColumnInfo& column : schema.columns) {
      use_.columns.push_back(column.name);
    }
  }
  return sink_.Header(schema);
}

Status AuditedScript::Rows(const RowBatch& batch) {
  use_.rows_sent += static_cast<int64_t>(batch.rows);
  return sink_.Rows(batch);
}

void AuditedScript::Done(const std::string& tag) {
  use_.tag = tag;
  sink_.Done(tag);
}

}  // namespace sluice::server

#include <fmt/core.h>

#include <utility>

#include "server/pgwire/embedded/embedded_server.h"
#include "server/pgwire/sql/binary_forms_internal.h"
#include "server/pgwire/sql/sql_words_internal.h"

// COPY to and from a client of an embedded database.
namespace sluice::server::pgwire {

Status EmbeddedServer::CopyOut(const SessionStatement& statement, std::string_view sql) {
  std::string select;
  if (statement.table.empty()) {
    select = TextOf(sql, statement.inner);
  } else {
    const std::string columns =
        statement.columns.empty() ? "*" : statement.columns.substr(1, statement.columns.size() - 2);
    select = fmt::format("SELECT {} FROM {}", columns, statement.table);
  }
  Result<std::unique_ptr<catalog::EmbeddedStatement>> prepared = session_->Prepare(select);
  if (!prepared.ok()) {
    return statement.table.empty() ? prepared.status().Within(statement.inner)
                                   : prepared.status().MovedTo({});
  }
  if ((*prepared)->columns().empty()) {
    return SyntaxError("COPY needs a query with rows");
  }
  RETURN_IF_ERROR(CheckWrites(**prepared));
  Running running;
  running.source = std::make_shared<Source>(*std::move(prepared));
  running.verb = "COPY";
  running.copy = statement.copy;
  running_ = std::move(running);
  return OkStatus();
}

Status EmbeddedServer::CopyIn(const SessionStatement& statement) {
  if (statement.table.empty()) {
    return SyntaxError("COPY FROM needs a table");
  }
  const std::string columns =
      statement.columns.empty() ? "*" : statement.columns.substr(1, statement.columns.size() - 2);
  Result<std::unique_ptr<catalog::EmbeddedStatement>> target =
      session_->Prepare(fmt::format("SELECT {} FROM {}", columns, statement.table));
  if (!target.ok()) {
    return target.status().MovedTo({});
  }
  std::string places;
  Copying copying{CopyReader(statement.copy), nullptr, {}};
  if (statement.copy.binary) {
    copying.binary.emplace();
  }
  for (const auto& column : (*target)->columns()) {
    copying.types.push_back(column.type.oid);
    places += fmt::format("{}${}", places.empty() ? "" : ", ", copying.types.size());
  }
  Result<std::unique_ptr<catalog::EmbeddedStatement>> insert = session_->Prepare(
      fmt::format("INSERT INTO {} {} VALUES ({})", statement.table, statement.columns, places));
  if (!insert.ok()) {
    return insert.status().MovedTo({});
  }
  copying.insert = *std::move(insert);
  RETURN_IF_ERROR(CheckWrites(*copying.insert));
  if (block_ == Block::kNone) {
    RETURN_IF_ERROR(BeginBlock(Block::kImplicit));
  }
  // Take the lock before asking the client for data, which would otherwise have to be kept while
  // waiting for the lock.
  ASSIGN_OR_RETURN(const std::unique_ptr<catalog::EmbeddedStatement> lock,
                   session_->Prepare(fmt::format("DELETE FROM {} WHERE 0", statement.table)));
  const Result<bool> locked = lock->Step();
  lock->Reset();
  RETURN_IF_ERROR(locked.status());
  AppendCopyBegins(*out_, 'G', copying.types.size(), statement.copy.binary);
  copying_.emplace(std::move(copying));
  return OkStatus();
}

Status EmbeddedServer::CheckCopied(size_t fields) const {
  const size_t columns = copying_->types.size();
  if (fields == columns) {
    return OkStatus();
  }
  return Status(Code::kInvalidArgument, fields < columns ? "missing data in a row of COPY"
                                                         : "extra data after last expected column")
      .SqlState("22P04");
}

Status EmbeddedServer::InsertBound() {
  const Result<bool> inserted = copying_->insert->Step();
  copying_->insert->Reset();
  ++copying_->rows;
  return inserted.ok() ? OkStatus() : inserted.status().MovedTo({});
}

Status EmbeddedServer::InsertCopied(const CopyRow& row) {
  Copying& copying = *copying_;
  const auto insert = [&]() -> Status {
    RETURN_IF_ERROR(CheckCopied(row.size()));
    copying.insert->Reset();
    for (size_t i = 0; i < row.size(); ++i) {
      // Columns of bytes or booleans accept PostgreSQL's forms of them; for all others the column's
      // affinity decides.
      const uint32_t type = copying.types[i];
      const bool converted =
          row[i].has_value() &&
          ((type == kByteaOid && row[i]->starts_with("\\x")) || type == kBoolOid) &&
          BindParameter(*copying.insert, i + 1, type, false, row[i]).ok();
      if (!converted) {
        RETURN_IF_ERROR(BindParameter(*copying.insert, i + 1, kTextOid, false, row[i]));
      }
    }
    return InsertBound();
  };
  Status inserted = insert();
  const std::string place = fmt::format("line {}", copying.reader.line());
  return inserted.ok() ? inserted : std::move(inserted).Detail(place);
}

Status EmbeddedServer::InsertCopied(const BinaryCopyReader::Fields& fields) {
  Copying& copying = *copying_;
  const auto insert = [&]() -> Status {
    RETURN_IF_ERROR(CheckCopied(fields.size()));
    copying.insert->Reset();
    for (size_t i = 0; i < fields.size(); ++i) {
      const uint32_t type = copying.types[i] == 0 ? uint32_t{kTextOid} : copying.types[i];
      RETURN_IF_ERROR(BindParameter(*copying.insert, i + 1, type, true, fields[i]));
    }
    return InsertBound();
  };
  Status inserted = insert();
  const std::string place = fmt::format("row {}", copying.binary->rows());
  return inserted.ok() ? inserted : std::move(inserted).Detail(place);
}

Status EmbeddedServer::HandleCopy(char type, std::string_view body) {
  const CopyReader::Take take = [this](const CopyRow& row) { return InsertCopied(row); };
  switch (type) {
    case 'd':
      return copying_->binary.has_value()
                 ? copying_->binary->Add(body,
                                         [this](const BinaryCopyReader::Fields& fields) {
                                           return InsertCopied(fields);
                                         })
                 : copying_->reader.Add(body, take);
    case 'c': {
      RETURN_IF_ERROR(copying_->binary.has_value() ? copying_->binary->End()
                                                   : copying_->reader.End(take));
      const int64_t rows = copying_->rows;
      // A script's own transaction ends with the script, a pipeline's with Sync.
      if (block_ == Block::kImplicit && in_script_ && next_ == statements_.size()) {
        RETURN_IF_ERROR(CommitBlock());
      }
      copying_.reset();
      Done(fmt::format("COPY {}", rows));
      return OkStatus();
    }
    case 'f': {
      BigEndianReader reader(body);
      return Status(Code::kCancelled, fmt::format("COPY from stdin failed: {}", reader.String()))
          .SqlState("57014");
    }
    case 'H':
    case 'S':
      return OkStatus();
    default:
      return Status(Code::kInvalidArgument, "unexpected message during COPY from stdin")
          .SqlState("08P01");
  }
}

}  // namespace sluice::server::pgwire

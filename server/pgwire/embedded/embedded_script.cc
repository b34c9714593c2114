#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "catalog/sql/sql_text.h"
#include "server/pgwire/embedded/embedded_server.h"
#include "server/pgwire/sql/binary_forms_internal.h"
#include "server/pgwire/sql/sql_words_internal.h"

// The statements that SQLite lacks: transactions, settings, cursors, PREPARE.
namespace sluice::server::pgwire {
namespace {

using SessionKind = SessionStatement::Kind;

Status NoCursor(std::string_view name) {
  return NotFound(fmt::format("cursor \"{}\" does not exist", name)).SqlState("34000");
}

Status NeedsBlock(std::string_view what) {
  return Status(Code::kFailedPrecondition,
                fmt::format("{} can only be used in transaction blocks", what))
      .SqlState("25P01");
}

catalog::SqlParameter ParameterOf(const catalog::EmbeddedCell& cell) {
  switch (cell.kind) {
    case catalog::EmbeddedCell::Kind::kNull:
      return {};
    case catalog::EmbeddedCell::Kind::kInteger:
      return cell.integer;
    case catalog::EmbeddedCell::Kind::kReal:
      return cell.real;
    case catalog::EmbeddedCell::Kind::kText:
      return std::string(cell.bytes);
    case catalog::EmbeddedCell::Kind::kBlob:
      break;
  }
  return catalog::SqlBytes{cell.bytes};
}

}  // namespace

void EmbeddedServer::Done(std::string_view tag) {
  AppendCommandComplete(*out_, tag);
  Ends(OkStatus(), tag);
}

void EmbeddedServer::Warn(std::string_view sqlstate, std::string_view message) {
  AppendNotice(*out_, "WARNING", sqlstate, message);
}

Status EmbeddedServer::RunSession(const SessionStatement& statement, std::string_view sql,
                                  const std::vector<uint16_t>& formats) {
  switch (statement.kind) {
    case SessionKind::kBegin:
    case SessionKind::kCommit:
    case SessionKind::kRollback:
    case SessionKind::kSavepoint:
    case SessionKind::kRelease:
    case SessionKind::kRollbackTo:
    case SessionKind::kModes:
      return RunTransaction(statement);
    case SessionKind::kSet:
      RETURN_IF_ERROR(settings_.Set(statement.name, statement.value, statement.local));
      break;
    case SessionKind::kReset:
      RETURN_IF_ERROR(settings_.Reset(statement.name));
      break;
    case SessionKind::kShow:
      return Show(statement, formats);
    case SessionKind::kDiscard:
      if (block_ == Block::kExplicit) {
        return Status(Code::kFailedPrecondition,
                      "DISCARD ALL cannot run inside a transaction block")
            .SqlState("25001");
      }
      prepared_.clear();
      cursors_.clear();
      RETURN_IF_ERROR(settings_.Reset(""));
      break;
    case SessionKind::kListen:
      break;
    case SessionKind::kDeallocate:
    case SessionKind::kPrepare:
    case SessionKind::kExecute:
      return RunPrepared(statement, sql, formats);
    case SessionKind::kDeclare:
    case SessionKind::kFetch:
    case SessionKind::kMove:
    case SessionKind::kClose:
      return RunCursor(statement, sql, formats);
    case SessionKind::kCopyIn:
      return CopyIn(statement);
    case SessionKind::kCopyOut:
      return CopyOut(statement, sql);
  }
  Done(statement.tag);
  return OkStatus();
}

Status EmbeddedServer::RunTransaction(const SessionStatement& statement) {
  std::string tag = statement.tag;
  const bool in_block = block_ == Block::kExplicit || block_ == Block::kFailed;
  switch (statement.kind) {
    case SessionKind::kBegin:
      if (in_block) {
        Warn("25001", "there is already a transaction in progress");
        break;
      }
      if (block_ == Block::kImplicit) {  // it includes what the script has done so far
        block_ = Block::kExplicit;
      } else {
        RETURN_IF_ERROR(BeginBlock(Block::kExplicit));
      }
      read_only_ = statement.read_only.value_or(read_only_);
      break;
    case SessionKind::kCommit:
    case SessionKind::kRollback: {
      if (block_ == Block::kNone) {
        Warn("25P01", "there is no transaction in progress");
        break;
      }
      const bool commits = statement.kind == SessionKind::kCommit && block_ != Block::kFailed;
      if (commits) {
        RETURN_IF_ERROR(CommitBlock());
      } else {
        RollBackBlock();
        tag = "ROLLBACK";
      }
      if (statement.chain) {
        RETURN_IF_ERROR(BeginBlock(Block::kExplicit));
      }
      break;
    }
    case SessionKind::kModes:
      if (statement.value == "session" && statement.read_only.has_value()) {
        RETURN_IF_ERROR(settings_.Set("default_transaction_read_only",
                                      *statement.read_only ? "on" : "off", false));
      } else if (statement.read_only.has_value()) {
        read_only_ = *statement.read_only;
      }
      break;
    default: {
      if (!in_block) {
        return NeedsBlock(statement.kind == SessionKind::kSavepoint ? "SAVEPOINT"
                          : statement.kind == SessionKind::kRelease ? "RELEASE SAVEPOINT"
                                                                    : "ROLLBACK TO SAVEPOINT");
      }
      const std::string_view verb = statement.kind == SessionKind::kSavepoint ? "SAVEPOINT"
                                    : statement.kind == SessionKind::kRelease ? "RELEASE"
                                                                              : "ROLLBACK TO";
      const Status done =
          session_->Run(fmt::format("{} {}", verb, catalog::QuoteName(statement.name)));
      if (!done.ok()) {
        return done.message().find("no such savepoint") == std::string::npos
                   ? done
                   : NotFound(fmt::format("savepoint \"{}\" does not exist", statement.name))
                         .SqlState("3B001");
      }
      if (statement.kind == SessionKind::kRollbackTo) {
        block_ = Block::kExplicit;
      }
      break;
    }
  }
  Done(tag);
  return OkStatus();
}

Status EmbeddedServer::Show(const SessionStatement& statement,
                            const std::vector<uint16_t>& formats) {
  Running running;
  running.verb = "SHOW";
  if (statement.name.empty()) {
    std::string rows;
    for (const auto& [name, value] : settings_.all()) {
      rows += fmt::format("{}({}, {})", rows.empty() ? "" : ", ",
                          catalog::QuoteText(name, catalog::Dialect::kSqlite),
                          catalog::QuoteText(value, catalog::Dialect::kSqlite));
    }
    ASSIGN_OR_RETURN(std::shared_ptr<catalog::EmbeddedStatement> all,
                     session_->Prepare(fmt::format(
                         "SELECT column1 AS name, column2 AS setting FROM (VALUES {})", rows)));
    running.source = std::make_shared<Source>(std::move(all));
    return Begin(std::move(running), formats);
  }
  const std::optional<std::string> value = settings_.Get(statement.name);
  if (!value.has_value()) {
    return NotFound(fmt::format("unrecognized configuration parameter \"{}\"", statement.name))
        .SqlState("42704");
  }
  ASSIGN_OR_RETURN(std::shared_ptr<catalog::EmbeddedStatement> one,
                   session_->Prepare(fmt::format("SELECT CAST($1 AS TEXT) AS {}",
                                                 catalog::QuoteName(statement.name))));
  RETURN_IF_ERROR(one->Bind(1, *value));
  running.source = std::make_shared<Source>(std::move(one));
  return Begin(std::move(running), formats);
}

Status EmbeddedServer::RunCursor(const SessionStatement& statement, std::string_view sql,
                                 const std::vector<uint16_t>& formats) {
  if (statement.kind == SessionKind::kDeclare) {
    if (!statement.hold && block_ != Block::kExplicit) {
      return NeedsBlock("DECLARE CURSOR");
    }
    if (cursors_.find(statement.name) != cursors_.end()) {
      return AlreadyExists(fmt::format("cursor \"{}\" already exists", statement.name))
          .SqlState("42P03");
    }
    Result<std::unique_ptr<catalog::EmbeddedStatement>> prepared =
        session_->Prepare(TextOf(sql, statement.inner));
    if (!prepared.ok()) {
      return prepared.status().Within(statement.inner);
    }
    if (!(*prepared)->read_only() || (*prepared)->columns().empty()) {
      return SyntaxError("a cursor is for a query").At(statement.inner);
    }
    ASSIGN_OR_RETURN(KeptBytes::Charge charge,
                     kept_bytes_.Keep(statement.name, (*prepared)->bytes()));
    cursors_[statement.name] = {std::make_shared<Source>(*std::move(prepared)), statement.hold,
                                std::move(charge)};
    Done(statement.tag);
    return OkStatus();
  }
  if (statement.kind == SessionKind::kClose && statement.name.empty()) {
    cursors_.clear();
    Done("CLOSE CURSOR ALL");
    return OkStatus();
  }
  const auto cursor = cursors_.find(statement.name);
  if (cursor == cursors_.end()) {
    return NoCursor(statement.name);
  }
  if (statement.kind == SessionKind::kClose) {
    cursors_.erase(cursor);
    Done(statement.tag);
    return OkStatus();
  }
  Running running;
  running.source = cursor->second.source;
  running.verb = statement.tag;
  running.silent = statement.kind == SessionKind::kMove;
  running.limit = statement.count;
  return Begin(std::move(running), formats);
}

Status EmbeddedServer::RunPrepared(const SessionStatement& statement, std::string_view sql,
                                   const std::vector<uint16_t>& formats) {
  if (statement.kind == SessionKind::kDeallocate) {
    if (statement.name.empty()) {
      prepared_.clear();
      Done("DEALLOCATE ALL");
      return OkStatus();
    }
    if (prepared_.erase(statement.name) == 0) {
      return NotFound(fmt::format("prepared statement \"{}\" does not exist", statement.name))
          .SqlState("26000");
    }
    Done(statement.tag);
    return OkStatus();
  }
  if (statement.kind == SessionKind::kPrepare) {
    if (prepared_.find(statement.name) != prepared_.end()) {
      return AlreadyExists(fmt::format("prepared statement \"{}\" already exists", statement.name))
          .SqlState("42P05");
    }
    auto prepared = std::make_shared<Prepared>();
    prepared->sql = TextOf(sql, statement.inner);
    Result<std::unique_ptr<catalog::EmbeddedStatement>> made = session_->Prepare(prepared->sql);
    if (!made.ok()) {
      return made.status().Within(statement.inner);
    }
    prepared->statement = *std::move(made);
    prepared->types.resize(prepared->statement->parameters());
    ASSIGN_OR_RETURN(
        prepared->charge,
        kept_bytes_.Keep(statement.name, 2 * prepared->sql.size() + prepared->statement->bytes()));
    prepared_[statement.name] = std::move(prepared);
    Done(statement.tag);
    return OkStatus();
  }
  const auto found = prepared_.find(statement.name);
  if (found == prepared_.end()) {
    return NotFound(fmt::format("prepared statement \"{}\" does not exist", statement.name))
        .SqlState("26000");
  }
  Prepared& prepared = *found->second;
  if (prepared.statement == nullptr) {
    return Unimplemented("EXECUTE runs what SQLite itself runs");
  }
  if (statement.arguments.size() != prepared.types.size()) {
    return SyntaxError(fmt::format("wrong number of parameters for prepared statement \"{}\"",
                                   statement.name))
        .Detail(fmt::format("Expected {} parameters but got {}.", prepared.types.size(),
                            statement.arguments.size()));
  }
  ASSIGN_OR_RETURN(std::shared_ptr<catalog::EmbeddedStatement> runs,
                   session_->Prepare(prepared.sql));
  RETURN_IF_ERROR(CheckWrites(*runs));
  if (!statement.arguments.empty()) {
    std::string select = "SELECT ";
    for (size_t i = 0; i < statement.arguments.size(); ++i) {
      select += fmt::format("{}({})", i == 0 ? "" : ", ", statement.arguments[i]);
    }
    ASSIGN_OR_RETURN(const std::unique_ptr<catalog::EmbeddedStatement> arguments,
                     session_->Prepare(select));
    RETURN_IF_ERROR(arguments->Step().status());
    for (size_t i = 0; i < statement.arguments.size(); ++i) {
      RETURN_IF_ERROR(runs->Bind(i + 1, ParameterOf(arguments->Cell(i))));
    }
  }
  Running running;
  running.verb = catalog::VerbOf(prepared.sql, catalog::Dialect::kSqlite);
  running.source = std::make_shared<Source>(std::move(runs));
  return Begin(std::move(running), formats);
}

}  // namespace sluice::server::pgwire

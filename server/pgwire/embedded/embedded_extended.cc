#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "catalog/sql/sql_text.h"
#include "catalog/sql/token_limit.h"
#include "server/pgwire/embedded/embedded_server.h"
#include "server/pgwire/sql/sql_words_internal.h"

// The extended protocol: Parse, Bind, Describe, Execute, Close, Sync.
namespace sluice::server::pgwire {
namespace {

bool SaysCatalog(std::string_view sql) {
  return sql.find("pg_") != std::string_view::npos ||
         sql.find("information_schema") != std::string_view::npos;
}

}  // namespace

Status EmbeddedServer::Parse(std::string_view body) {
  ASSIGN_OR_RETURN(const ParseMessage message, ReadParse(body));
  script_ = message.sql;
  parsing_ = observer_ == nullptr ? std::string_view() : message.sql;
  place_ = 0;
  if (message.name.empty()) {
    prepared_.erase(prepared_.begin(), prepared_.upper_bound(""));
  } else if (prepared_.find(message.name) != prepared_.end()) {
    return AlreadyExists(fmt::format("prepared statement \"{}\" already exists", message.name))
        .SqlState("42P05");
  }
  RETURN_IF_ERROR(catalog::CheckTokens(script_));
  const std::vector<Span> statements = catalog::SplitEmbeddedScript(script_);
  if (statements.size() > 1) {
    return SyntaxError("cannot insert multiple commands into a prepared statement");
  }
  auto prepared = std::make_shared<Prepared>();
  prepared->types = message.types;
  if (!statements.empty()) {
    place_ = statements[0].begin;
    prepared->sql = TextOf(script_, statements[0]);
    ASSIGN_OR_RETURN(prepared->session, ReadSessionStatement(prepared->sql));
    RETURN_IF_ERROR(CheckBlock(prepared->session.has_value() ? &*prepared->session : nullptr));
    if (!prepared->session.has_value()) {
      ASSIGN_OR_RETURN(prepared->statement, session_->Prepare(prepared->sql));
      prepared->types.resize(std::max(prepared->types.size(), prepared->statement->parameters()));
      prepared->of_catalog = SaysCatalog(prepared->sql);
    }
  }
  ASSIGN_OR_RETURN(
      prepared->charge,
      kept_bytes_.Keep(message.name,
                       2 * prepared->sql.size() + prepared->types.size() * sizeof(uint32_t) +
                           (prepared->statement == nullptr ? 0 : prepared->statement->bytes())));
  prepared_[std::string(message.name)] = std::move(prepared);
  parsing_.clear();
  AppendMessage(*out_, '1', {});
  return OkStatus();
}

Status EmbeddedServer::Bind(std::string_view body) {
  ASSIGN_OR_RETURN(const BindMessage message, ReadBind(body));
  const auto found = prepared_.find(message.statement);
  if (found == prepared_.end()) {
    return NotFound(fmt::format("prepared statement \"{}\" does not exist", message.statement))
        .SqlState("26000");
  }
  Prepared& prepared = *found->second;
  script_ = prepared.sql;
  place_ = 0;
  RETURN_IF_ERROR(CheckBlock(prepared.session.has_value() ? &*prepared.session : nullptr));
  if (!message.portal.empty() && portals_.find(message.portal) != portals_.end()) {
    return AlreadyExists(fmt::format("portal \"{}\" already exists", message.portal))
        .SqlState("42P03");
  }
  portals_.erase(std::string(message.portal));
  if (message.values.size() != prepared.types.size()) {
    return Status(Code::kInvalidArgument,
                  fmt::format("bind message supplies {} parameters, but prepared statement \"{}\" "
                              "requires {}",
                              message.values.size(), message.statement, prepared.types.size()))
        .SqlState("08P01");
  }
  Portal portal;
  portal.sql = prepared.sql;
  portal.session = prepared.session;
  portal.formats = message.result_formats;
  if (prepared.statement != nullptr) {
    std::shared_ptr<catalog::EmbeddedStatement> statement = prepared.statement;
    constexpr long kMine = 2;  // references by the prepared statement and by this one
    if (statement.use_count() > kMine || prepared.of_catalog) {
      ASSIGN_OR_RETURN(statement, session_->Prepare(prepared.sql));
    }
    for (size_t i = 0; i < message.values.size(); ++i) {
      const bool binary =
          !message.formats.empty() && message.formats[message.formats.size() == 1 ? 0 : i] != 0;
      const bool guessed = prepared.types[i] == kUnspecifiedOid && i < prepared.guessed.size();
      const uint32_t type = guessed ? prepared.guessed[i] : prepared.types[i];
      const Status bound = BindParameter(*statement, i + 1, type, binary, message.values[i]);
      // A text that does not fit the column's type may still equal one that is stored there.
      RETURN_IF_ERROR(bound.ok() || binary || !guessed
                          ? bound
                          : BindParameter(*statement, i + 1, kTextOid, false, message.values[i]));
    }
    ASSIGN_OR_RETURN(portal.columns, DescribeColumns(*statement, portal.formats));
    portal.source = std::make_shared<Source>(std::move(statement));
  }
  ASSIGN_OR_RETURN(
      portal.charge,
      kept_bytes_.Keep(message.portal,
                       body.size() + 2 * portal.sql.size() +
                           (portal.source == nullptr ? 0 : portal.source->statement->bytes())));
  portals_.insert_or_assign(std::string(message.portal), std::move(portal));
  AppendMessage(*out_, '2', {});
  return OkStatus();
}

// The columns that a statement of the session returns.
Result<std::vector<WireColumn>> EmbeddedServer::ColumnsOf(const SessionStatement& statement,
                                                          const std::vector<uint16_t>& formats) {
  using Kind = SessionStatement::Kind;
  if (statement.kind == Kind::kFetch) {
    const auto cursor = cursors_.find(statement.name);
    if (cursor != cursors_.end()) {
      return DescribeColumns(*cursor->second.source->statement, formats);
    }
  }
  if (statement.kind == Kind::kExecute) {
    const auto prepared = prepared_.find(statement.name);
    if (prepared != prepared_.end() && prepared->second->statement != nullptr) {
      return DescribeColumns(*prepared->second->statement, formats);
    }
  }
  std::vector<WireColumn> columns;
  if (statement.kind == Kind::kShow) {
    WireColumn column;
    column.name = statement.name.empty() ? "name" : statement.name;
    column.format = formats.empty() ? uint16_t{0} : formats[0];
    columns.push_back(column);
    if (statement.name.empty()) {
      column.name = "setting";
      columns.push_back(column);
    }
  }
  return columns;
}

Status EmbeddedServer::Describe(std::string_view body) {
  ASSIGN_OR_RETURN(const TargetMessage message, ReadTarget(body));
  std::vector<WireColumn> columns;
  if (message.kind == 'S') {
    const auto prepared = prepared_.find(message.name);
    if (prepared == prepared_.end()) {
      return NotFound(fmt::format("prepared statement \"{}\" does not exist", message.name))
          .SqlState("26000");
    }
    if (prepared->second->session.has_value()) {
      ASSIGN_OR_RETURN(columns, ColumnsOf(*prepared->second->session, {}));
    } else if (prepared->second->statement != nullptr) {
      ASSIGN_OR_RETURN(columns, DescribeColumns(*prepared->second->statement, {}));
    }
    Prepared& described = *prepared->second;
    std::vector<uint32_t> types = described.types;
    const auto unsaid = [](uint32_t type) { return type == kUnspecifiedOid; };
    if (std::any_of(types.begin(), types.end(), unsaid)) {
      ASSIGN_OR_RETURN(described.guessed, session_->ParameterTypes(described.sql, types.size()));
      for (size_t i = 0; i < types.size(); ++i) {
        types[i] = unsaid(types[i]) ? described.guessed[i] : types[i];
      }
      std::replace_if(types.begin(), types.end(), unsaid, uint32_t{kTextOid});
    }
    AppendParameterDescription(*out_, types);
  } else {
    const auto portal = portals_.find(message.name);
    const auto cursor = cursors_.find(message.name);  // which is a portal, too
    if (portal == portals_.end() && cursor == cursors_.end()) {
      return NotFound(fmt::format("portal \"{}\" does not exist", message.name)).SqlState("34000");
    }
    if (portal == portals_.end()) {
      ASSIGN_OR_RETURN(columns, DescribeColumns(*cursor->second.source->statement, {}));
    } else {
      columns = portal->second.columns;
    }
    if (portal != portals_.end() && portal->second.session.has_value()) {
      ASSIGN_OR_RETURN(columns, ColumnsOf(*portal->second.session, portal->second.formats));
    }
  }
  if (columns.empty()) {
    AppendMessage(*out_, 'n', {});
  } else {
    AppendRowDescription(*out_, columns);
  }
  return OkStatus();
}

Status EmbeddedServer::Execute(std::string_view body) {
  ASSIGN_OR_RETURN(const ExecuteMessage message, ReadExecute(body));
  const auto found = portals_.find(message.portal);
  if (found == portals_.end()) {
    return NotFound(fmt::format("portal \"{}\" does not exist", message.portal)).SqlState("34000");
  }
  Portal& portal = found->second;
  script_ = portal.sql;
  place_ = 0;
  RETURN_IF_ERROR(CheckBlock(portal.session.has_value() ? &*portal.session : nullptr));
  if (portal.sql.empty()) {
    AppendMessage(*out_, 'I', {});
    return OkStatus();
  }
  RETURN_IF_ERROR(Begins(portal.sql));
  if (!NextIsSync() || message.max_rows > 0) {
    RETURN_IF_ERROR(EnterImplicit(portal.sql));
  }
  if (portal.session.has_value()) {
    const SessionStatement statement = *portal.session;  // which may destroy its portal
    const std::vector<uint16_t> formats = portal.formats;
    return RunSession(statement, std::string(portal.sql), formats);
  }
  RETURN_IF_ERROR(CheckWrites(*portal.source->statement));
  if (portal.executed && portal.source->done && portal.columns.empty()) {
    return FailedPrecondition(fmt::format("portal \"{}\" cannot be run anymore", message.portal))
        .SqlState("55000");
  }
  portal.executed = true;
  Running running;
  running.source = portal.source;
  running.verb = catalog::VerbOf(portal.sql, catalog::Dialect::kSqlite);
  running.columns = portal.columns;
  running.described = true;
  running.limit = message.max_rows == 0 ? -1 : static_cast<int64_t>(message.max_rows);
  running.suspends = true;
  running_ = std::move(running);
  return OkStatus();
}

Status EmbeddedServer::Close(std::string_view body) {
  ASSIGN_OR_RETURN(const TargetMessage message, ReadTarget(body));
  if (message.kind == 'S') {
    prepared_.erase(std::string(message.name));
  } else {
    portals_.erase(std::string(message.name));
  }
  AppendMessage(*out_, '3', {});
  return OkStatus();
}

Status EmbeddedServer::Sync() {
  if (block_ == Block::kImplicit) {
    Status committed = CommitBlock();
    if (Stopped(committed)) {
      return committed;
    }
    if (!committed.ok()) {
      AppendError(*out_, committed, {});
    }
  }
  if (block_ == Block::kNone) {
    EndPortals();
  }
  skips_ = false;
  Ready();
  return OkStatus();
}

}  // namespace sluice::server::pgwire

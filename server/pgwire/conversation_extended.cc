#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "parser/parser.h"
#include "server/pgwire/conversation.h"
#include "server/pgwire/prepared_text.h"
#include "server/pgwire/sql_words_internal.h"

// The extended protocol's messages where they are ours: Parse, Bind, Describe, Execute, Close.
namespace sluice::server::pgwire {

std::string Conversation::Prepared::OwnText() const {
  return std::string(inside.has_value() ? TextOf(text, *inside) : text);
}

Status Conversation::NameIsTaken(std::string_view name) {
  return AlreadyExists(fmt::format("prepared statement \"{}\" already exists", name))
      .SqlState("42P05");
}

Status Conversation::NoPrepared(std::string_view name) {
  return NotFound(fmt::format("prepared statement \"{}\" does not exist", name)).SqlState("26000");
}

// Whether it is a statement, whatever its parameters are.
Status Conversation::CheckText(std::string_view text, const std::vector<uint32_t>& types) {
  const Result<BoundText> unbound = BindText(text, types, {}, nullptr);
  if (!unbound.ok()) {
    return parser::Parse(text).status();
  }
  return unbound->Moved(parser::Parse(unbound->text).status());
}

// EXECUTE, with what it executes in its place.
Result<std::string> Conversation::Executed(std::string_view sql) const {
  const std::optional<ExecuteText> execute = ReadExecuteText(sql);
  const auto prepared = execute.has_value() ? statements_.find(execute->name) : statements_.end();
  if (prepared == statements_.end()) {
    return NoPrepared(execute.has_value() ? execute->name : "");
  }
  ASSIGN_OR_RETURN(const BoundText bound,
                   BindArguments(prepared->second.text, prepared->second.type_names, *execute));
  return bound.text;
}

void Conversation::PerformOwn(const Step& step) {
  if (group_failed_) {
    return;  // skipped, as what follows until Sync
  }
  place_ = 0;
  switch (step.type) {
    case 'P':
      ParseOwn(step.text);
      break;
    case 'B':
      BindOwn(step.text);
      break;
    case 'D':
      DescribeOwn(step.text);
      break;
    case 'E':
      ExecuteOwn(step.text);
      break;
    default:
      CloseOwn(step.text);
  }
}

void Conversation::ParseOwn(std::string_view body) {
  const Result<ParseMessage> message = ReadParse(body);
  if (!message.ok()) {
    return Fail(message.status());
  }
  script_ = message->sql;
  if (!message->name.empty() && statements_.find(message->name) != statements_.end()) {
    return Fail(NameIsTaken(message->name));
  }
  const std::optional<Route> route = RouteOf(message->sql);
  if (route.has_value() && !route->error.ok()) {
    return Fail(route->error);
  }
  if (!route.has_value() || route->parts.size() != 1) {
    return Fail(SyntaxError("cannot insert multiple commands into a prepared statement"));
  }
  const Part& part = route->parts.front();
  Prepared prepared;
  prepared.text = message->sql;
  prepared.types = message->types;
  prepared.inside = part.inside;
  switch (part.kind) {
    case Part::Kind::kSet:
      return Fail(host_.CheckSetting(message->sql));
    case Part::Kind::kPrepare:
      return Fail(Unimplemented("PREPARE of a statement of Sluice is sent as a simple query")
                      .At(*part.inside)
                      .Hint("let the driver prepare the statement itself"));
    case Part::Kind::kExecute: {
      Result<std::string> text = Executed(message->sql);
      if (!text.ok()) {
        return Fail(text.status());
      }
      prepared.text = *std::move(text);
      break;
    }
    default:
      break;
  }
  place_ = part.inside.value_or(Span{0, 0}).begin;
  const Status readable = CheckText(prepared.OwnText(), prepared.types);
  if (!readable.ok()) {
    return Fail(readable);
  }
  prepared.types.resize(std::max(prepared.types.size(), CountParameters(prepared.text)));
  statements_.insert_or_assign(std::string(message->name), std::move(prepared));
  std::string reply;
  AppendMessage(reply, '1', {});
  Reply(reply);
}

void Conversation::BindOwn(std::string_view body) {
  const Result<BindMessage> message = ReadBind(body);
  if (!message.ok()) {
    return Fail(message.status());
  }
  const auto prepared = statements_.find(message->statement);
  if (prepared == statements_.end()) {
    return Fail(NoPrepared(message->statement));
  }
  if (!message->portal.empty() && portals_.find(message->portal) != portals_.end()) {
    return Fail(AlreadyExists("portal \"" + std::string(message->portal) + "\" already exists")
                    .SqlState("42P03"));
  }
  DropPortal(message->portal);
  script_ = prepared->second.text;
  place_ = prepared->second.inside.value_or(Span{0, 0}).begin;
  std::vector<std::optional<std::string>> values;
  for (const auto& value : message->values) {
    values.emplace_back(value.has_value() ? std::optional<std::string>(*value) : std::nullopt);
  }
  Result<BoundText> bound = BindText(prepared->second.OwnText(), prepared->second.types,
                                     message->formats, &values, dialect_);
  if (!bound.ok()) {
    return Fail(bound.status());
  }
  Portal portal;
  portal.text = prepared->second.text;
  portal.inside = prepared->second.inside;
  portal.statement.text = bound->text;
  portal.statement.result_formats = message->result_formats;
  portal.bound = *std::move(bound);
  portals_.insert_or_assign(std::string(message->portal), std::move(portal));
  std::string reply;
  AppendMessage(reply, '2', {});
  Reply(reply);
}

void Conversation::DescribeOwn(std::string_view body) {
  const Result<TargetMessage> message = ReadTarget(body);
  if (!message.ok()) {
    return Fail(message.status());
  }
  describing_ = DescribedTarget{message->kind, std::string(message->name)};
  if (message->kind == 'P') {
    const auto portal = portals_.find(message->name);
    if (portal != portals_.end() && portal->second.inside.has_value()) {
      return ReplyDescription({});
    }
    return portal == portals_.end()
               ? Fail(NotFound("portal \"" + describing_->name + "\" does not exist")
                          .SqlState("34000"))
               : DescribeBound(portal->second.statement, portal->second.text, portal->second.bound);
  }
  const auto prepared = statements_.find(message->name);
  if (prepared == statements_.end()) {
    return Fail(NoPrepared(describing_->name));
  }
  if (prepared->second.inside.has_value()) {
    return ReplyDescription({});
  }
  Result<BoundText> bound =
      BindText(prepared->second.text, prepared->second.types, {}, nullptr, dialect_);
  if (!bound.ok()) {
    return Fail(bound.status());
  }
  OwnStatement statement;
  statement.text = bound->text;
  DescribeBound(statement, prepared->second.text, *std::move(bound));
}

void Conversation::DescribeBound(const OwnStatement& statement, std::string text, BoundText bound) {
  script_ = std::move(text);
  if (status_ == 'E') {
    return Fail(AbortedBlock());
  }
  bound_ = std::move(bound);
  running_ = true;
  host_.Describe(statement, status_ == 'T');
}

void Conversation::Described(const Result<std::vector<WireColumn>>& columns) {
  running_ = false;
  TakeBack();
  const BoundText bound = std::exchange(bound_, {});
  if (columns.ok()) {
    ReplyDescription(*columns);
  } else {
    Fail(bound.Moved(columns.status()));
  }
  Advance();
  ProcessHeld();
}

// Without columns: it answers without rows, or those that it has are told when it is executed.
void Conversation::ReplyDescription(const std::vector<WireColumn>& columns) {
  const std::optional<DescribedTarget> target = std::exchange(describing_, std::nullopt);
  std::string reply;
  if (target->kind == 'S') {
    const auto prepared = statements_.find(target->name);
    std::vector<uint32_t> types;
    if (prepared != statements_.end()) {
      types = prepared->second.types;
    }
    std::replace(types.begin(), types.end(), uint32_t{kUnspecifiedOid}, uint32_t{kTextOid});
    AppendParameterDescription(reply, types);
  }
  if (columns.empty()) {
    AppendMessage(reply, 'n', {});
  } else {
    AppendRowDescription(reply, columns);
  }
  Reply(reply);
}

void Conversation::ExecuteOwn(std::string_view body) {
  const Result<ExecuteMessage> message = ReadExecute(body);
  if (!message.ok()) {
    return Fail(message.status());
  }
  const auto found = portals_.find(message->portal);
  if (found == portals_.end()) {
    return Fail(NotFound("portal \"" + std::string(message->portal) + "\" does not exist")
                    .SqlState("34000"));
  }
  Portal& portal = found->second;
  if (portal.done) {
    std::string reply;
    AppendCommandComplete(reply, "SELECT 0");
    return Reply(reply);
  }
  script_ = portal.text;
  running_portal_ = found->first;
  if (portal.suspended) {
    portal.suspended = false;
    running_ = true;
    return host_.Resume(message->max_rows);
  }
  if ((group_dirty_ || portal.inside.has_value()) && status_ == 'I' && !wrapped_) {
    // What the pipeline has done so far is seen by the statement, and is one transaction with it.
    // Rows that are kept need one to go with.
    AskOurs("BEGIN");
    wrapped_ = true;
    steps_.push_front({.kind = Step::Kind::kOwn, .type = 'E', .text = std::string(body)});
    return;
  }
  portal.statement.max_rows = message->max_rows;
  bound_ = portal.bound;
  if (portal.inside.has_value()) {
    OwnStatement statement = portal.statement;
    statement.describe_rows = true;
    statement.max_rows = 0;
    statement.result_formats.clear();
    place_ = portal.inside->begin;
    const Span whole = {0, static_cast<int64_t>(script_.size())};
    return Keep(statement, whole, *portal.inside);
  }
  BeginOwn(portal.statement);
}

void Conversation::CloseOwn(std::string_view body) {
  const Result<TargetMessage> message = ReadTarget(body);
  if (!message.ok()) {
    return Fail(message.status());
  }
  if (message->kind == 'S') {
    statements_.erase(std::string(message->name));
  } else {
    DropPortal(message->name);
  }
  std::string reply;
  AppendMessage(reply, '3', {});
  Reply(reply);
}

void Conversation::DropPortal(std::string_view name) {
  const auto found = portals_.find(name);
  if (found == portals_.end()) {
    return;
  }
  if (found->second.suspended) {
    host_.GiveUp();
  }
  portals_.erase(found);
}

void Conversation::DropPortals() {
  while (!portals_.empty()) {
    DropPortal(std::string(portals_.begin()->first));
  }
}

}  // namespace sluice::server::pgwire

#include <algorithm>
#include <utility>

#include "parser/parser.h"
#include "server/pgwire/conversation.h"

// The extended protocol's messages where they are ours: Parse, Bind, Describe, Execute, Close.
namespace sluice::server::pgwire {

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
    return Fail(
        AlreadyExists("prepared statement \"" + std::string(message->name) + "\" already exists")
            .SqlState("42P05"));
  }
  const std::optional<Route> route = RouteScript(message->sql);
  if (route.has_value() && !route->error.ok()) {
    return Fail(route->error);
  }
  if (route.has_value() && route->parts.size() == 1 &&
      route->parts.front().kind == Part::Kind::kSet) {
    return Fail(host_.CheckSetting(message->sql));
  }
  if (!route.has_value() || route->parts.size() != 1) {
    return Fail(SyntaxError("cannot insert multiple commands into a prepared statement"));
  }
  if (const std::optional<Span>& inside = route->parts.front().inside) {
    return Fail(Unimplemented("a cursor over a statement of Sluice is declared by a simple query")
                    .At(*inside)
                    .Hint("fetch the statement's rows by a portal's row limit (setFetchSize)"));
  }
  const Result<BoundText> unbound = BindText(message->sql, message->types, {}, nullptr);
  const auto parsed = unbound.ok() ? parser::Parse(unbound->text) : parser::Parse(message->sql);
  if (!parsed.ok()) {
    return Fail(unbound.ok() ? unbound->Moved(parsed.status()) : parsed.status());
  }
  Prepared prepared;
  prepared.text = message->sql;
  prepared.types = message->types;
  prepared.types.resize(std::max(prepared.types.size(), CountParameters(message->sql)));
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
    return Fail(
        NotFound("prepared statement \"" + std::string(message->statement) + "\" does not exist")
            .SqlState("26000"));
  }
  if (!message->portal.empty() && portals_.find(message->portal) != portals_.end()) {
    return Fail(AlreadyExists("portal \"" + std::string(message->portal) + "\" already exists")
                    .SqlState("42P03"));
  }
  DropPortal(message->portal);
  script_ = prepared->second.text;
  std::vector<std::optional<std::string>> values;
  for (const auto& value : message->values) {
    values.emplace_back(value.has_value() ? std::optional<std::string>(*value) : std::nullopt);
  }
  Result<BoundText> bound =
      BindText(prepared->second.text, prepared->second.types, message->formats, &values);
  if (!bound.ok()) {
    return Fail(bound.status());
  }
  Portal portal;
  portal.text = prepared->second.text;
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
    return portal == portals_.end()
               ? Fail(NotFound("portal \"" + describing_->name + "\" does not exist")
                          .SqlState("34000"))
               : DescribeBound(portal->second.statement, portal->second.text, portal->second.bound);
  }
  const auto prepared = statements_.find(message->name);
  if (prepared == statements_.end()) {
    return Fail(NotFound("prepared statement \"" + describing_->name + "\" does not exist")
                    .SqlState("26000"));
  }
  Result<BoundText> bound = BindText(prepared->second.text, prepared->second.types, {}, nullptr);
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
  const std::optional<DescribedTarget> target = std::exchange(describing_, std::nullopt);
  const BoundText bound = std::exchange(bound_, {});
  if (!columns.ok()) {
    Fail(bound.Moved(columns.status()));
  } else {
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
    if (columns->empty()) {
      AppendMessage(reply, 'n', {});
    } else {
      AppendRowDescription(reply, *columns);
    }
    Reply(reply);
  }
  Advance();
  ProcessHeld();
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
  if (group_dirty_ && status_ == 'I' && !wrapped_) {
    // What the pipeline has done so far is seen by the statement, and is one transaction with it.
    AskOurs("BEGIN");
    wrapped_ = true;
    steps_.push_front({.kind = Step::Kind::kOwn, .type = 'E', .text = std::string(body)});
    return;
  }
  portal.statement.max_rows = message->max_rows;
  bound_ = portal.bound;
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

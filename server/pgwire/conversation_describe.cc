#include <algorithm>
#include <utility>

#include "server/pgwire/conversation.h"

// Describe, of the extended protocol, for statements of ours.
namespace sluice::server::pgwire {

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

// No columns: the statement returns no rows, or its columns are reported when it is executed.
void Conversation::ReplyDescription(const std::vector<WireColumn>& columns) {
  const std::optional<DescribedTarget> target = std::exchange(describing_, std::nullopt);
  std::string reply;
  if (target->kind == 'S') {
    const auto prepared = statements_.find(target->name);
    std::vector<uint32_t> types;
    if (prepared != statements_.end()) {
      types = prepared->second.types;
      prepared->second.described = columns;
    }
    std::replace(types.begin(), types.end(), uint32_t{kUnspecifiedOid}, uint32_t{kTextOid});
    AppendParameterDescription(reply, types);
  } else if (const auto portal = portals_.find(target->name); portal != portals_.end()) {
    portal->second.statement.described = columns;
  }
  if (columns.empty()) {
    AppendMessage(reply, 'n', {});
  } else {
    AppendRowDescription(reply, columns);
  }
  Reply(reply);
}

}  // namespace sluice::server::pgwire

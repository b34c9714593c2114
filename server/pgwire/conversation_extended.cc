#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "parser/parser.h"
#include "server/pgwire/conversation.h"
#include "server/pgwire/sql/prepared_text.h"
#include "server/pgwire/sql/sql_words_internal.h"

// The extended protocol's messages for statements of ours: Parse, Bind, Execute, Close.
namespace sluice::server::pgwire {
namespace {

constexpr std::string_view kTextsStatement = "sluice parameters";

}  // namespace

std::string Conversation::Prepared::OwnText() const {
  return std::string(inside.has_value() ? TextOf(text, *inside) : text);
}

void Conversation::PerformOwn(const Step& step) {
  if (group_failed_) {
    return;  // skipped, like everything up to Sync
  }
  place_ = 0;
  switch (step.type) {
    case 'P':
      ParseOwn(step);
      break;
    case 'B':
      BindOwn(step);
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

// The statement sees what its pipeline has done so far, and is in one transaction with it. True:
// that transaction has to be begun first.
bool Conversation::BeginForPipeline(const Step& again) {
  if (status_ != 'I' || wrapped_) {
    return false;
  }
  AskOurs("BEGIN");
  wrapped_ = true;
  steps_.push_front(again);
  return true;
}

void Conversation::ParseOwn(const Step& step) {
  const Result<ParseMessage> message = ReadParse(step.text);
  if (!message.ok()) {
    return Fail(message.status());
  }
  const Result<std::string> sql = Utf8Of(message->sql);
  if (!sql.ok()) {
    return Fail(sql.status());
  }
  script_ = *sql;
  if (status_ == 'E') {
    return Fail(AbortedBlock());
  }
  if (!message->name.empty() && statements_.find(message->name) != statements_.end()) {
    return Fail(NameIsTaken(message->name));
  }
  const std::optional<Route> route = RouteOf(*sql);
  known_route_.reset();
  if (route.has_value() && !route->error.ok()) {
    return Fail(route->error);
  }
  if (!route.has_value() || route->parts.size() != 1) {
    return Fail(SyntaxError("cannot insert multiple commands into a prepared statement"));
  }
  const Part& part = route->parts.front();
  Prepared prepared;
  prepared.text = *sql;
  prepared.types = message->types;
  prepared.inside = part.inside;
  switch (part.kind) {
    case Part::Kind::kSet:
      return Fail(host_.CheckSetting(*sql));
    case Part::Kind::kPrepare:
      prepared.prepares = true;
      break;
    case Part::Kind::kExecute: {
      if (!step.asked) {
        return group_dirty_ && BeginForPipeline(step) ? void() : AskForArguments(part.span, step);
      }
      Result<BoundText> text = ExecutedText(part.span);
      if (!text.ok()) {
        return Fail(text.status());
      }
      prepared.text = std::move(text->text);
      break;
    }
    default:
      break;
  }
  place_ = part.inside.value_or(Span{0, 0}).begin;
  const Status readable = CheckPreparedText(prepared.OwnText(), prepared.types);
  if (!readable.ok()) {
    return Fail(readable);
  }
  if (!prepared.prepares) {  // whose parameters are those of EXECUTE
    prepared.types.resize(std::max(prepared.types.size(), CountParameters(prepared.text)));
  }
  Result<KeptBytes::Charge> charge = kept_bytes_.Keep(
      message->name, prepared.text.size() + prepared.types.size() * sizeof(uint32_t));
  if (!charge.ok()) {
    return Fail(charge.status());
  }
  prepared.charge = *std::move(charge);
  statements_.insert_or_assign(std::string(message->name), std::move(prepared));
  std::string reply;
  AppendMessage(reply, '1', {});
  Reply(reply);
}

void Conversation::BindOwn(const Step& step) {
  const Result<BindMessage> message = ReadBind(step.text);
  if (!message.ok()) {
    return Fail(message.status());
  }
  const auto prepared = statements_.find(message->statement);
  if (prepared == statements_.end()) {
    return Fail(NoPrepared(message->statement));
  }
  const size_t expected = prepared->second.types.size();
  if (message->values.size() != expected) {
    return Fail(InvalidArgument(fmt::format("bind message supplies {} parameters, but prepared "
                                            "statement \"{}\" requires {}",
                                            message->values.size(), message->statement, expected))
                    .SqlState("08P01"));
  }
  if (status_ == 'E') {
    return Fail(AbortedBlock());
  }
  if (!message->portal.empty() && portals_.find(message->portal) != portals_.end()) {
    return Fail(AlreadyExists("portal \"" + std::string(message->portal) + "\" already exists")
                    .SqlState("42P03"));
  }
  const std::vector<size_t> strange = StrangeParameters(prepared->second.types, message->formats);
  if (!strange.empty() && !step.asked) {
    return AskForTexts(strange, prepared->second, *message, step);
  }
  const ShownParameters shown = strange.empty() ? ShownParameters() : TakeTexts(strange);
  DropPortal(message->portal);
  script_ = prepared->second.text;
  place_ = prepared->second.inside.value_or(Span{0, 0}).begin;
  std::vector<std::optional<std::string>> values;
  for (size_t i = 0; i < expected; ++i) {
    const std::optional<std::string_view>& value = message->values[i];
    const bool text = FormatOf(message->formats, i) == 0 || IsText(prepared->second.types[i]);
    Result<std::string> utf8 = value.has_value() && text
                                   ? Utf8Of(*value)
                                   : Result<std::string>(std::string(value.value_or("")));
    if (!utf8.ok()) {
      return Fail(utf8.status());
    }
    values.emplace_back(value.has_value() ? std::optional<std::string>(*std::move(utf8))
                                          : std::nullopt);
  }
  Result<BoundText> bound = prepared->second.prepares
                                ? Result<BoundText>(BoundText())
                                : BindText(prepared->second.OwnText(), prepared->second.types,
                                           message->formats, &values, dialect_, shown);
  if (!bound.ok()) {
    return Fail(bound.status());
  }
  Portal portal;
  portal.text = prepared->second.text;
  portal.inside = prepared->second.inside;
  portal.prepares = prepared->second.prepares;
  portal.statement.text = bound->text;
  portal.statement.result_formats = message->result_formats;
  portal.statement.described = prepared->second.described;
  portal.bound = *std::move(bound);
  // The text is there three times, with the parameters' values in two of them.
  Result<KeptBytes::Charge> charge =
      kept_bytes_.Keep(message->portal, portal.text.size() + 2 * portal.statement.text.size());
  if (!charge.ok()) {
    return Fail(charge.status());
  }
  portal.charge = *std::move(charge);
  portals_.insert_or_assign(std::string(message->portal), std::move(portal));
  std::string reply;
  AppendMessage(reply, '2', {});
  Reply(reply);
}

// For parameters whose types or formats are not known here, asks the database for their texts and
// their types' names. Outside a transaction, this query's effects end at once.
void Conversation::AskForTexts(const std::vector<size_t>& which, const Prepared& prepared,
                               const BindMessage& message, Step again) {
  again.asked = true;
  steps_.push_front(std::move(again));
  answer_.reset();
  std::string select;
  std::vector<uint32_t> types;
  BindMessage bind;
  bind.statement = kTextsStatement;
  for (const size_t index : which) {
    select +=
        fmt::format("{}${}::pg_catalog.text, pg_catalog.format_type({}, NULL)",
                    select.empty() ? "SELECT " : ", ", types.size() + 1, prepared.types[index]);
    types.push_back(prepared.types[index]);
    bind.formats.push_back(FormatOf(message.formats, index));
    bind.values.push_back(message.values[index]);
  }
  std::string bytes;
  AppendParse(bytes, {kTextsStatement, select, types});
  AppendBind(bytes, bind);
  AppendExecute(bytes, {});
  std::string close = "S";
  close += kTextsStatement;
  close += '\0';
  AppendMessage(bytes, 'C', close);
  for (const char type : {'P', 'B', 'E', 'C'}) {
    Expect(type, Hears::kRow);
  }
  if (!group_dirty_) {
    Expect('S', Hears::kNothing);
  }
  AppendMessage(bytes, group_dirty_ ? 'H' : 'S', {});
  host_.ToServer(bytes);
}

ShownParameters Conversation::TakeTexts(const std::vector<size_t>& which) {
  const AnsweredRow row = std::exchange(answer_, std::nullopt).value_or(AnsweredRow());
  ShownParameters shown;
  for (size_t i = 0; i < which.size() && 2 * i + 1 < row.values.size(); ++i) {
    shown[which[i]] = {row.values[2 * i], row.values[2 * i + 1].value_or("")};
  }
  return shown;
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
  if (!portal.failure.ok()) {
    return Fail(portal.failure);
  }
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
  // Kept rows need a surrounding transaction, too.
  if ((group_dirty_ || (portal.inside.has_value() && !portal.prepares)) &&
      BeginForPipeline({.kind = Step::Kind::kOwn, .type = 'E', .text = std::string(body)})) {
    return;
  }
  if (portal.prepares) {
    portal.done = true;
    return PrepareOwn({.kind = Step::Kind::kPrepare,
                       .span = {0, static_cast<int64_t>(script_.size())},
                       .inside = *portal.inside});
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

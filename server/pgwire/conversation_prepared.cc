#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "catalog/sql/sql_text.h"
#include "parser/parser.h"
#include "server/pgwire/conversation.h"
#include "server/pgwire/sql/prepared_text.h"
#include "server/pgwire/sql/sql_words_internal.h"

// Prepared statements of ours in SQL. The database prepares a statement of the same name with as
// many parameters, which returns them: so the database checks and computes EXECUTE's arguments, as
// it does for other statements of this session.
namespace sluice::server::pgwire {

void Conversation::PrepareOwn(const Step& step) {
  const std::string_view script = script_;
  place_ = step.inside.begin;
  const std::string_view before = TextOf(script, {step.span.begin, step.inside.begin});
  const std::optional<PrepareText> prepare = ReadPrepareText(before);
  if (!prepare.has_value()) {
    return Fail(SyntaxError("PREPARE needs a name: PREPARE name [(type, ...)] AS a statement"));
  }
  const auto known = statements_.find(prepare->name);
  if (known != statements_.end() && !known->second.in_database) {
    return Fail(NameIsTaken(prepare->name));
  }
  const std::string_view text = TextOf(script, step.inside);
  const Status readable = CheckPreparedText(text, {});
  if (!readable.ok()) {
    return Fail(readable);
  }
  const auto room = kept_bytes_.Keep(prepare->name, text.size());
  if (!room.ok()) {
    return Fail(room.status());
  }
  steps_.push_front({.kind = Step::Kind::kPrepared, .span = step.span, .inside = step.inside});
  steps_.push_front(
      {.kind = Step::Kind::kAsk,
       .text = Blanks(script.substr(0, static_cast<size_t>(step.span.begin))) +
               std::string(before) +
               ArgumentsQuery(std::max(prepare->types.size(), CountParameters(text)), dialect_)});
}

void Conversation::RegisterPrepared(const Step& step) {
  const std::string_view script = script_;
  const std::optional<PrepareText> prepare =
      ReadPrepareText(TextOf(script, {step.span.begin, step.inside.begin}));
  Prepared prepared;
  prepared.text = TextOf(script, step.inside);
  prepared.type_names = prepare->types;
  prepared.types.resize(std::max(prepare->types.size(), CountParameters(prepared.text)));
  prepared.in_database = true;
  Result<KeptBytes::Charge> charge = kept_bytes_.Keep(
      prepare->name, prepared.text.size() + prepared.types.size() * sizeof(uint32_t));
  if (!charge.ok()) {
    return Fail(charge.status());
  }
  prepared.charge = *std::move(charge);
  statements_.insert_or_assign(prepare->name, std::move(prepared));
  std::string done;
  AppendCommandComplete(done, "PREPARE");
  Reply(done);
}

void Conversation::ForgetPrepared(std::string_view name) {
  if (name.empty()) {
    statements_.clear();
  } else if (const auto known = statements_.find(name); known != statements_.end()) {
    statements_.erase(known);
  }
}

// `execute`: place in script_. Performs `again` once the answer is there.
void Conversation::AskForArguments(const Span& execute, Step again) {
  const std::string_view script = script_;
  const std::string_view text = TextOf(script, execute);
  const std::optional<ExecuteText> read = ReadExecuteText(text);
  const auto prepared = read.has_value() ? statements_.find(read->name) : statements_.end();
  if (prepared == statements_.end()) {  // the script has deallocated it
    return Fail(NoPrepared(read.has_value() ? read->name : ""));
  }
  again.asked = true;
  steps_.push_front(std::move(again));
  // Sent at its own place, so that the places in the database's errors are right.
  const auto begin = static_cast<size_t>(execute.begin + read->begin);
  steps_.push_front({.kind = Step::Kind::kAskRow,
                     .text = Blanks(script.substr(0, begin)) +
                             std::string(text.substr(static_cast<size_t>(read->begin)))});
  if (!prepared->second.in_database) {
    steps_.push_front({.kind = Step::Kind::kInDatabase, .text = read->name});
    steps_.push_front(
        {.kind = Step::Kind::kAsk,
         .text = fmt::format("PREPARE {} AS {}", catalog::QuoteName(read->name),
                             ArgumentsQuery(prepared->second.types.size(), dialect_))});
  }
}

// The statement that EXECUTE names, with the arguments from the database's answer.
Result<BoundText> Conversation::ExecutedText(const Span& execute) {
  const std::optional<AnsweredRow> arguments = std::exchange(answer_, std::nullopt);
  const std::string_view text = TextOf(script_, execute);
  const std::optional<ExecuteText> read = ReadExecuteText(text);
  const auto prepared = read.has_value() ? statements_.find(read->name) : statements_.end();
  if (prepared == statements_.end()) {
    return NoPrepared(read.has_value() ? read->name : "");
  }
  if (!arguments.has_value() || arguments->values.size() != arguments->types.size()) {
    return ResourceExhausted("the arguments of EXECUTE are too long").SqlState("54000");
  }
  const bool any = !prepared->second.types.empty();
  return BindArguments(prepared->second.text, prepared->second.types, prepared->second.type_names,
                       text, *read, any ? *arguments : AnsweredRow());
}

void Conversation::ExecutePrepared(const Step& step) {
  place_ = step.span.begin;
  if (!step.asked) {
    return AskForArguments(step.span, step);
  }
  Result<BoundText> bound = ExecutedText(step.span);
  if (!bound.ok()) {
    return Fail(bound.status());
  }
  OwnStatement statement;
  statement.text = bound->text;
  statement.describe_rows = true;
  bound_ = *std::move(bound);
  BeginOwn(statement);
}

}  // namespace sluice::server::pgwire

#include "server/statements/plain_statement.h"

#include <optional>
#include <sstream>

#include "base/letter_case.h"
#include "catalog/data_source.h"
#include "executor/executor.h"
#include "executor/result_rows.h"
#include "server/pgwire/sql/prepared_text.h"
#include "server/pgwire/sql/router.h"
#include "server/statements/prepared_statements.h"
#include "server/statements/session.h"

namespace sluice::server {
namespace {

class SinkReceiver final : public catalog::RowReceiver {
 public:
  SinkReceiver(executor::ResultSink& sink, const CopyInput& input) : sink_(sink), input_(input) {}
  Status Header(const Schema& schema) override { return sink_.Header(schema); }
  Status Rows(const RowBatch& batch) override { return sink_.Rows(batch); }
  void Notice(const std::string& message) override { sink_.Notice(message); }
  Status Copied(std::string_view text) override { return sink_.Copied(text); }
  Result<std::string> NextToCopy() override {
    return input_ ? input_() : catalog::RowReceiver::NextToCopy();
  }

 private:
  executor::ResultSink& sink_;
  const CopyInput& input_;
};

// RESET ALL and DISCARD ALL, which also concern the session's own settings.
bool ResetsSettings(const parser::PlainStatement& statement) {
  constexpr size_t kLongest = 100;
  if (statement.text.size() > kLongest) {
    return false;
  }
  std::istringstream words(UpperAscii(statement.text));
  std::string verb, all, more;
  words >> verb >> all >> more;
  return (verb == "RESET" || verb == "DISCARD") && all == "ALL" && more.empty();
}

// SHOW sluice.name. nullopt: the statement is the database's.
std::optional<Status> RunShowSetting(const parser::PlainStatement& statement, Session& session,
                                     executor::ResultSink& sink) {
  constexpr size_t kLongest = 200;
  if (statement.text.size() > kLongest) {
    return std::nullopt;
  }
  std::istringstream words(statement.text);
  std::string verb, more;
  parser::Name name;
  words >> verb >> name.text >> more;
  if (UpperAscii(verb) != "SHOW" || !UpperAscii(name.text).starts_with("SLUICE.") ||
      !more.empty()) {
    return std::nullopt;
  }
  const auto show = [&]() -> Status {
    ASSIGN_OR_RETURN(const SettingSpec* const setting, FindSetting(name));
    executor::ResultRows rows({{{setting->name, DataType::kText, "text"}}});
    rows.Add({session.Shown(*setting)});
    RETURN_IF_ERROR(rows.SendTo(sink));
    sink.Done("SHOW");
    return OkStatus();
  };
  return show().Within(statement.span);
}

}  // namespace

bool ChangesSession(const parser::PlainStatement& statement) {
  return ResetsSettings(statement) || pgwire::ReadPrepareOfOurs(statement.text).has_value() ||
         pgwire::DeallocatedName(statement.text).has_value();
}

Status RunPlain(const parser::PlainStatement& statement, Session& session,
                executor::ResultSink& sink) {
  if (const std::optional<Status> ran = RunPrepared(statement, session, sink)) {
    return *ran;
  }
  if (const std::optional<Status> shown = RunShowSetting(statement, session, sink)) {
    return *shown;
  }
  const bool resets = ResetsSettings(statement);
  if (resets && session.source().dialect() == "sqlite") {  // which has no settings of its own
    session.ResetSettings();
    sink.Done(UpperAscii(statement.text.substr(0, 1)) == "R" ? "RESET" : "DISCARD ALL");
    return OkStatus();
  }
  SinkReceiver receiver(sink, session.copy_input());
  const auto executed = session.source().Execute(statement.text, &receiver, session.stop());
  if (!executed.ok()) {
    // SQLite's errors often have no place.
    return executed.status().Within(statement.span);
  }
  if (resets) {
    session.ResetSettings();
  }
  sink.Done(executed->tag);
  return OkStatus();
}

}  // namespace sluice::server

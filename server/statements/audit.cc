#include "server/statements/audit.h"

#include <fmt/core.h>
#include <pthread.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/guarded.h"
#include "base/log.h"
#include "base/utf8.h"
#include "base/value.h"
#include "catalog/model_record.h"
#include "server/config/terminal.h"
#include "server/config/version.h"
#include "server/statements/statement_record.h"

namespace sluice::server {
namespace {

// Of a line: everything but the one long text or list in it.
constexpr size_t kForTheRest = 3'000;

// 2026-01-31T12:00:00.123456Z
std::string Time(int64_t micros) {
  constexpr int64_t kMicrosPerSecond = 1'000'000;
  std::string time = FormatTimestamp(micros - micros % kMicrosPerSecond);
  std::replace(time.begin(), time.end(), ' ', 'T');
  return fmt::format("{}.{:06}Z", time.substr(0, time.find_first_of(".+Z")),
                     micros % kMicrosPerSecond);
}

// Who has not logged in yet must not fill a disk with it.
std::string ShortName(const std::string& name) {
  constexpr size_t kLongest = 128;
  return ShortText(name, kLongest);
}

std::string OutcomeOf(const Status& status) {
  return status.ok() ? "ok" : std::string(status.sqlstate());
}

}  // namespace

// One line under construction: an object of JSON, valid whatever bytes its texts have.
class Audit::Line {
 public:
  explicit Line(std::string_view event) : writer_(buffer_) {
    writer_.StartObject();
    Text("time", Time(WallMicros()));
    Text("event", event);
  }
  void Text(const char* key, std::string_view text) {
    constexpr size_t kMost = 2'100;  // clients choose names, too
    const std::string valid = ValidUtf8(text.substr(0, kMost));
    writer_.Key(key);
    writer_.String(valid.data(), static_cast<rapidjson::SizeType>(valid.size()));
  }
  // A statement as it is recorded; where `room` is too small for all of it, it can be identified.
  void Statement(std::string_view recorded, std::string_view written, size_t room) {
    const std::string valid = ValidUtf8(recorded);
    size_t most = 0;
    size_t escaped = 0;
    for (; most < valid.size(); ++most) {
      const auto c = static_cast<unsigned char>(valid[most]);
      constexpr size_t kControl = 6;  // \u0001
      escaped += c < ' ' ? kControl : c == '"' || c == '\\' ? 2 : 1;
      if (escaped > room) {
        break;
      }
    }
    const std::string text = ShortText(valid, most);
    writer_.Key("sql");
    writer_.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
    if (most < valid.size() || recorded.size() > room) {
      Text("sql_sha256", catalog::Sha256Hex(written));
      Number("sql_bytes", static_cast<int64_t>(written.size()));
    }
  }
  void TextIfAny(const char* key, std::string_view text) {
    if (!text.empty()) {
      Text(key, text);
    }
  }
  void Number(const char* key, int64_t number) {
    writer_.Key(key);
    writer_.Int64(number);
  }
  void NumberIfAny(const char* key, int64_t number) {
    if (number != 0) {
      Number(key, number);
    }
  }
  void Seconds(double seconds) {
    writer_.Key("seconds");
    writer_.SetMaxDecimalPlaces(6);
    writer_.Double(seconds);
  }
  // As many as there is room for; the others are counted.
  void Texts(const char* key, const std::vector<std::string>& texts, size_t room) {
    if (texts.empty()) {
      return;
    }
    writer_.Key(key);
    writer_.StartArray();
    size_t written = 0;
    // What escapes may make of a character.
    constexpr size_t kLongestEscape = 6;
    for (; written < texts.size(); ++written) {
      if (buffer_.GetSize() + kLongestEscape * texts[written].size() > room) {
        break;
      }
      const std::string valid = ValidUtf8(texts[written]);
      writer_.String(valid.data(), static_cast<rapidjson::SizeType>(valid.size()));
    }
    writer_.EndArray();
    NumberIfAny(fmt::format("{}_left_out", key).c_str(),
                static_cast<int64_t>(texts.size() - written));
  }
  void Models(const std::vector<StatementUse::Model>& models) {
    if (models.empty()) {
      return;
    }
    writer_.Key("models");
    writer_.StartArray();
    for (const StatementUse::Model& model : models) {
      writer_.StartObject();
      TextIfAny("schema", model.schema);
      Text("name", model.name);
      NumberIfAny("version", model.version);
      TextIfAny("sha256", model.sha256);
      writer_.EndObject();
    }
    writer_.EndArray();
  }
  void Client(const AuditedClient& client) {
    Text("door", client.door);
    Text("role", ShortName(client.role));
    Text("address", client.address);
    TextIfAny("database", ShortName(client.database));
  }
  std::string_view End() {
    writer_.EndObject();
    return {buffer_.GetString(), buffer_.GetSize()};
  }

 private:
  rapidjson::StringBuffer buffer_;
  rapidjson::Writer<rapidjson::StringBuffer> writer_;
};

Audit::Audit(std::unique_ptr<AuditLines> lines)
    : lines_(std::move(lines)), begun_micros_(WallMicros()) {}

Audit::~Audit() {
  std::jthread teller;
  std::vector<RefusedLogins::Sum> sums;
  {
    const MutexLock lock(mutex_);
    teller = std::move(teller_);
    sums = refused_.TakeAll();
  }
  teller = {};  // ends it
  Tell(sums);
}

Result<std::unique_ptr<Audit>> Audit::Open(const std::string& target) {
  if (target.empty()) {
    return std::make_unique<Audit>();
  }
  std::unique_ptr<Audit> audit(
      new Audit(target == "syslog" ? OpenAuditSyslog() : OpenAuditFile(target)));
  Line line("start");
  line.Text("version", kVersion);
  line.Number("process", getpid());
  RETURN_IF_ERROR(audit->Write(line));
  return audit;
}

std::string Audit::NameOf(int64_t statement) const {
  return fmt::format("{:x}-{}", begun_micros_, statement);
}

Status Audit::Write(Line& line) {
  return lines_ == nullptr ? OkStatus() : lines_->Write(line.End());
}

// What has happened already cannot be refused any more.
void Audit::WriteAfterwards(Line& line) {
  const Status written = Write(line);
  if (!written.ok()) {
    log::Error("{}", written.ToString());
  }
}

bool Audit::IsToldNow(const AuditedClient& client, const Status& outcome) {
  if (outcome.ok()) {
    return true;
  }
  const MutexLock lock(mutex_);
  if (!teller_.joinable()) {
    teller_ = std::jthread([this](const std::stop_token& end) {
      pthread_setname_np(pthread_self(), "refused logins");
      TellSums(end);
    });
  }
  refused_changed_.notify_one();
  return refused_.Add(
      {client.door, ShortName(client.role), client.address, OutcomeOf(outcome), outcome.message()},
      clock_.Now(), WallMicros());
}

void Audit::TellSums(const std::stop_token& end) {
  while (!end.stop_requested()) {
    std::vector<RefusedLogins::Sum> sums;
    {
      MutexLock lock(mutex_);
      refused_changed_.wait(lock.native(), end,
                            [this]() REQUIRES(mutex_) { return refused_.NextEnd().has_value(); });
      const std::optional<TimePoint> next = refused_.NextEnd();
      if (next.has_value()) {
        refused_changed_.wait_for(lock.native(), end, *next - clock_.Now(), [] { return false; });
      }
      sums = refused_.TakeOver(clock_.Now());
    }
    // Logged by Guarded.
    [[maybe_unused]] const Status told = Guarded("putting refused logins on record", [&] {
      Tell(sums);
      return OkStatus();
    });
  }
}

void Audit::Tell(const std::vector<RefusedLogins::Sum>& sums) {
  for (const RefusedLogins::Sum& sum : sums) {
    log::Record("login refused door={} role={} address={} repeated={} reason={}", sum.login.door,
                log::Field(sum.login.role), log::Field(sum.login.address), sum.count,
                log::Field(sum.login.reason));
    Line line("login");
    line.Client({sum.login.door, sum.login.role, sum.login.address, ""});
    line.Text("outcome", sum.login.outcome);
    line.Text("reason", sum.login.reason);
    line.Number("repeated", sum.count);
    line.Text("since", Time(sum.since_micros));
    WriteAfterwards(line);
  }
}

Status Audit::Login(const AuditedClient& client, const Status& outcome, int64_t backend) {
  if (!IsToldNow(client, outcome)) {
    return OkStatus();
  }
  log::Record("login {} door={} role={} address={} database={}{}",
              outcome.ok() ? "accepted" : "refused", client.door,
              log::Field(ShortName(client.role)), log::Field(client.address),
              log::Field(ShortName(client.database)),
              outcome.ok() ? "" : " reason=" + log::Field(outcome.message()));
  Line line("login");
  line.Client(client);
  line.NumberIfAny("backend", backend);
  line.Text("outcome", OutcomeOf(outcome));
  if (!outcome.ok()) {
    line.Text("reason", outcome.message());
  }
  return Write(line);
}

bool Audit::MayBeInFull(const AuditedClient& client, size_t bytes) {
  const MutexLock lock(mutex_);
  return full_texts_.Take(ShortName(client.role), bytes, clock_.Now());
}

Result<int64_t> Audit::Begins(const AuditedClient& client, std::string_view sql,
                              catalog::Dialect dialect) {
  constexpr size_t kLogged = 2'000;
  const size_t most = lines_ == nullptr ? kLogged : lines_->most_bytes() - kForTheRest;
  const std::string text = RecordedText(sql, dialect, most);
  const size_t room = MayBeInFull(client, text.size()) ? most : kLogged;
  log::Record("statement role={} address={} sql={}", log::Field(ShortName(client.role)),
              log::Field(client.address), log::Field(ShortText(text, kLogged)));
  const int64_t statement = ++statements_;
  Line line("begin");
  line.Text("statement", NameOf(statement));
  line.Client(client);
  line.Statement(text, sql, room);
  RETURN_IF_ERROR(Write(line));
  return statement;
}

void Audit::Ends(int64_t statement, const AuditedClient& client, const std::string& session_role,
                 const Status& outcome, double seconds, const StatementUse& use) {
  if (lines_ == nullptr) {
    return;
  }
  const size_t room = lines_->most_bytes() - kForTheRest;
  Line line("end");
  line.Text("statement", NameOf(statement));
  line.Client(client);
  if (session_role != client.role) {
    line.TextIfAny("session_role", session_role);
  }
  line.Text("outcome", OutcomeOf(outcome));
  line.TextIfAny("tag", use.tag);
  line.Seconds(seconds);
  line.Number("rows_sent", use.rows_sent);
  line.NumberIfAny("rows_read", use.rows_read);
  line.NumberIfAny("job", use.job);
  line.TextIfAny("snapshot", use.snapshot);
  line.Models(use.models);
  line.Texts("granted_to", use.granted_to, room);
  line.Texts("revoked_from", use.revoked_from, room);
  line.Texts("columns", use.columns, room);
  WriteAfterwards(line);
}

void Audit::Cancel(const AuditedClient& client, int64_t backend) {
  Line line("cancel");
  line.Client(client);
  line.Number("backend", backend);
  WriteAfterwards(line);
}

void Audit::Refused(const AuditedClient& client, const Status& why) {
  Line line("refused");
  line.Client(client);
  line.Text("outcome", OutcomeOf(why));
  WriteAfterwards(line);
}

}  // namespace sluice::server

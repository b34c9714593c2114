#include "server/gateway/wire_statements.h"

#include <condition_variable>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "parser/parser.h"
#include "server/gateway/gateway_scripts.h"
#include "server/pgwire/door.h"
#include "server/pgwire/statement_service.h"
#include "server/pgwire/wire_sink.h"
#include "server/statements/settings.h"

namespace sluice::server {
namespace {

class WireStatements final : public pgwire::StatementService {
 public:
  explicit WireStatements(GatewayScripts& scripts) : scripts_(scripts) {}
  ~WireStatements() override {
    MutexLock lock(mutex_);
    ended_.wait(lock.native(), [this]() REQUIRES(mutex_) { return running_ == 0; });
  }

  void Run(pgwire::StatementRequest request, std::shared_ptr<pgwire::WireSink> sink,
           std::function<void(const Status&)> ended) override {
    OnThread(
        [this, request = std::move(request), sink = std::move(sink), ended = std::move(ended)] {
          GatewayScripts::Script script = ScriptOf(request);
          script.on_settings = [&sink](const SessionSettings& settings) {
            const auto& every = settings.progress_interval_ms;
            sink->TellProgress(
                every.has_value() ? std::optional(std::chrono::milliseconds(*every)) : std::nullopt,
                settings.quiet);
          };
          GatewayScripts::Client client = ClientOf(request);
          client.ended = ended;
          static_cast<void>(scripts_.Run(script, client, *sink, {}));  // `ended` receives it
        });
  }

  void Describe(pgwire::StatementRequest request,
                std::function<void(const Result<Schema>&)> described) override {
    OnThread([this, request = std::move(request), described = std::move(described)] {
      GatewayScripts::Client client = ClientOf(request);
      client.ended = [](const Status& /*status*/) {};
      described(scripts_.Describe(ScriptOf(request), client));
    });
  }

  void LoggedIn(const pgwire::SessionLogin& login) override { scripts_.LoggedIn(LoginOf(login)); }

  Status CheckSetting(std::string_view set) override {
    ASSIGN_OR_RETURN(const std::vector<parser::Statement> statements, parser::Parse(set));
    for (const parser::Statement& statement : statements) {
      if (const auto* setting = std::get_if<parser::SetStatement>(&statement)) {
        ASSIGN_OR_RETURN(const SettingSpec* spec, FindSetting(setting->name));
        RETURN_IF_ERROR(CheckSettingValue(*spec, setting->value));
      }
    }
    return OkStatus();
  }

 private:
  // This session is already logged in, so a failure is not a wrong password.
  static Login LoginOf(const pgwire::SessionLogin& login) {
    return {login.user, login.password, "", login.database, login.desk.host, login.desk.port};
  }
  static GatewayScripts::Script ScriptOf(const pgwire::StatementRequest& request) {
    const pgwire::SessionLogin& login = request.login;
    if (request.session.host.empty()) {  // the database has no users; the door may
      GatewayScripts::Script script{request.statement.text, {}, login.user};
      script.login.proven = true;
      script.login.database = login.database;
      script.settings = &request.settings;
      script.beside_transaction = request.transaction;
      script.address = login.address;
      script.door = pgwire::kDoorName;
      return script;
    }
    GatewayScripts::Script script{request.statement.text, LoginOf(login), login.user};
    script.database_session = &request.session;
    script.in_transaction = request.transaction;
    script.address = login.address;
    script.door = pgwire::kDoorName;
    return script;
  }
  static GatewayScripts::Client ClientOf(const pgwire::StatementRequest& request) {
    GatewayScripts::Client client;
    client.is_gone = [gone = request.gone] { return gone.stop_requested(); };
    client.stop = request.stop;
    return client;
  }

  void OnThread(std::function<void()> work) {
    {
      const MutexLock lock(mutex_);
      ++running_;
    }
    std::thread([this, work = std::move(work)] {
      work();
      const MutexLock lock(mutex_);
      --running_;
      ended_.notify_all();
    }).detach();
  }

  GatewayScripts& scripts_;
  Mutex mutex_;
  std::condition_variable_any ended_;
  int running_ GUARDED_BY(mutex_) = 0;
};

}  // namespace

std::unique_ptr<pgwire::StatementService> MakeWireStatements(GatewayScripts& scripts) {
  return std::make_unique<WireStatements>(scripts);
}

}  // namespace sluice::server

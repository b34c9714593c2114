#include "server/gateway/wire_statements.h"

#include <condition_variable>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "executor/executor.h"
#include "server/gateway/gateway_scripts.h"
#include "server/pgwire/statement_service.h"

namespace sluice::server {
namespace {

class WireStatements final : public pgwire::StatementService {
 public:
  explicit WireStatements(GatewayScripts& scripts) : scripts_(scripts) {}
  ~WireStatements() override {
    MutexLock lock(mutex_);
    ended_.wait(lock.native(), [this]() NO_THREAD_SAFETY_ANALYSIS { return running_ == 0; });
  }

  void Run(pgwire::StatementRequest request, std::shared_ptr<executor::ResultSink> sink,
           std::function<void(const Status&)> ended) override {
    OnThread(
        [this, request = std::move(request), sink = std::move(sink), ended = std::move(ended)] {
          GatewayScripts::Client client;
          client.is_gone = [&request] { return request.stop.stop_requested(); };
          client.ended = ended;
          static_cast<void>(
              scripts_.Run({request.statement.text, request.login.user, nullptr, &request.session},
                           client, *sink, {}));
        });
  }

  void Describe(pgwire::StatementRequest /*request*/,
                std::function<void(const Result<Schema>&)> described) override {
    described(Unimplemented("statements of Sluice cannot be described yet"));
  }

  Status CheckSetting(std::string_view /*set*/) override { return OkStatus(); }

 private:
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

#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "tests/server/pgwire/door_fixture.h"
#include "tests/support/database_proxy.h"
#include "tests/support/eventually.h"

// A request to cancel that reaches the server late cancels the statement that it was meant for, or
// none.
namespace sluice {
namespace {

using std::chrono::milliseconds;

class CancelDoorTest : public DoorTest {
 protected:
  void SetUp() override {
    DoorTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    const std::string url = database_.url();
    const size_t port = url.rfind(':') + 1, path = url.rfind('/');
    proxy_ = std::make_unique<testing::DatabaseProxy>(std::stoi(url.substr(port, path - port)));
    Start("--auth trust", url.substr(0, port) + std::to_string(proxy_->port()) + url.substr(path));
    session_.reset(PQconnectdb(Conninfo().c_str()));
    ASSERT_EQ(PQstatus(session_.get()), CONNECTION_OK) << PQerrorMessage(session_.get());
  }
  // The first field of the statement's rows, or its SQLSTATE.
  std::string Run(const char* sql) {
    const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(session_.get(), sql),
                                                               PQclear);
    return PQresultStatus(result.get()) == PGRES_TUPLES_OK
               ? PQgetvalue(result.get(), 0, 0)
               : PQresultErrorField(result.get(), PG_DIAG_SQLSTATE);
  }
  // Whether the server runs such a statement, asked past the proxy.
  bool Runs(const std::string& statement) {
    const std::unique_ptr<PGconn, decltype(&PQfinish)> other(PQconnectdb(database_.url().c_str()),
                                                             PQfinish);
    const std::string sql =
        "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() AND "
        "query LIKE '%" +
        statement + "%'";
    const std::unique_ptr<PGresult, decltype(&PQclear)> found(PQexec(other.get(), sql.c_str()),
                                                              PQclear);
    return PQntuples(found.get()) > 0;
  }
  std::unique_ptr<testing::DatabaseProxy> proxy_;
  std::unique_ptr<PGconn, decltype(&PQfinish)> session_{nullptr, PQfinish};
};

TEST_F(CancelDoorTest, ALateCancelDoesNotHitTheNextStatement) {
  proxy_->HoldCancels(true);
  const std::unique_ptr<PGcancel, decltype(&PQfreeCancel)> cancel(PQgetCancel(session_.get()),
                                                                  PQfreeCancel);
  std::atomic<bool> acted = false, first_is_over = false;
  std::thread canceller([&] {
    EXPECT_TRUE(Eventually([this] { return Runs("SELECT 1 FROM pg_sleep(1)"); }));
    char error[256];
    EXPECT_EQ(PQcancel(cancel.get(), error, sizeof error), 1) << error;
    acted = true;
  });
  std::thread server([&] {
    EXPECT_TRUE(Eventually([&] { return first_is_over && proxy_->held_cancels() > 0; }));
    std::this_thread::sleep_for(milliseconds(500));  // while the second one runs, or waits
    EXPECT_FALSE(acted) << "the door confirmed the request before the server had acted on it";
    proxy_->HoldCancels(false);
  });
  EXPECT_EQ(Run("SELECT 1 FROM pg_sleep(1)"), "1");
  first_is_over = true;
  EXPECT_EQ(Run("SELECT 2 FROM pg_sleep(1)"), "2");
  canceller.join();
  server.join();
  EXPECT_EQ(Run("SELECT 3"), "3");
}

TEST_F(CancelDoorTest, ACancelStillReachesTheStatementThatRuns) {
  std::thread canceller([&] {
    EXPECT_TRUE(Eventually([this] { return Runs("pg_sleep(30)"); }));
    const std::unique_ptr<PGcancel, decltype(&PQfreeCancel)> cancel(PQgetCancel(session_.get()),
                                                                    PQfreeCancel);
    char error[256];
    EXPECT_EQ(PQcancel(cancel.get(), error, sizeof error), 1) << error;
  });
  EXPECT_EQ(Run("SELECT 1 FROM pg_sleep(30)"), "57014");
  canceller.join();
  EXPECT_EQ(Run("SELECT 2"), "2");
}

}  // namespace
}  // namespace sluice

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "catalog/key_login.h"
#include "server/gateway/client_login_internal.h"
#include "server/gateway/gateway.grpc.pb.h"
#include "server/gateway/sqlflow.grpc.pb.h"
#include "tests/server/gateway/two_users.h"
#include "tests/server/sluice_process.h"
#include "tests/support/database_proxy.h"
#include "tests/support/eventually.h"

// Every user of a gateway logs in to the database, and acts there as that user.
namespace sluice::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class GatewayLogin : public TwoUsers {
 protected:
  std::shared_ptr<grpc::Channel> Channel() const {
    return grpc::CreateChannel(gateway_->address(), grpc::InsecureChannelCredentials());
  }
  static void Authorize(grpc::ClientContext& context, const std::string& role) {
    context.AddMetadata(kAuthorization, BasicAuthorization(role, PasswordOf(role)));
  }
  // Ann's rows and job.
  void TrainAsAnn() {
    MustRun(ann_,
            "CREATE TABLE points AS SELECT i % 10 AS a, i % 2 AS y FROM generate_series(1, 200) i");
    MustRun(ann_,
            "SELECT a, y FROM points TO TRAIN LinearClassifier WITH train.epoch=1 LABEL y "
            "INTO m");
  }
};

TEST_F(GatewayLogin, AUserIsWhoLoggedInWhateverTheyClaim) {
  RecordingSink sink;
  ASSERT_TRUE(Run(ann_, "SELECT current_user AS u, session_user AS s", sink).ok());
  EXPECT_EQ(sink.Cell("u"), Value(ann_));
  EXPECT_EQ(sink.Cell("s"), Value(ann_));
  TrainAsAnn();
  RecordingSink jobs;
  ASSERT_TRUE(Run(ann_, "SELECT username, owner FROM sluice.jobs", jobs).ok());
  EXPECT_EQ(jobs.Cell("username"), Value(ann_));
  EXPECT_EQ(jobs.Cell("owner"), Value(ann_));
}

// The calls about jobs begin no session, and act as a session would begin.
TEST_F(GatewayLogin, CallsAboutJobsActAsTheRoleThatALoginBeginsWith) {
  TrainAsAnn();
  const auto jobs = [&] {
    grpc::ClientContext context;
    Authorize(context, ann_);
    v1::ListJobsResponse response;
    EXPECT_TRUE(v1::Gateway::NewStub(Channel())->ListJobs(&context, {}, &response).ok());
    return response.jobs_size();
  };
  EXPECT_EQ(jobs(), 1);
  Admin("GRANT " + bob_ + " TO " + ann_);
  Admin("ALTER ROLE " + ann_ + " SET role = " + bob_);
  gateway_.reset();  // with the sessions that it keeps
  Start();
  EXPECT_EQ(jobs(), 0);
  grpc::ClientContext context;
  Authorize(context, ann_);
  v1::CancelJobRequest request;
  request.set_id(1);
  v1::CancelJobResponse response;
  EXPECT_EQ(v1::Gateway::NewStub(Channel())->CancelJob(&context, request, &response).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(GatewayLogin, AWrongPasswordIsTheServersOwnError) {
  const Status wrong = LogIn(ann_, "wrong").status();
  EXPECT_EQ(wrong.code(), Code::kPermissionDenied);
  EXPECT_EQ(wrong.sqlstate(), "28P01");
  EXPECT_EQ(wrong.message(), "password authentication failed for user \"" + ann_ + "\"");
  const Status other = LogIn(ann_, PasswordOf(bob_)).status();
  EXPECT_EQ(other.message(), wrong.message());
  const Status keys = LogIn(ann_, std::string(catalog::kKeySecretPrefix) + "x:y").status();
  EXPECT_EQ(keys.message(), wrong.message());
  EXPECT_EQ(keys.sqlstate(), "28P01");

  const auto stub = v1::Gateway::NewStub(Channel());
  for (const std::string& sent :
       {std::string(), BasicAuthorization(ann_, "wrong"), BasicAuthorization(ann_, ""),
        std::string("Basic %%%"), std::string("Bearer abc"), std::string("Basic YW5u")}) {
    grpc::ClientContext context;
    if (!sent.empty()) {
      context.AddMetadata(kAuthorization, sent);
    }
    v1::ListJobsResponse response;
    const grpc::Status status = stub->ListJobs(&context, {}, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << sent;
  }
}

TEST_F(GatewayLogin, StrangersDoNotLearnWhereTheDatabaseIs) {
  const std::string url = database_.url();
  const size_t port = url.rfind(':') + 1, path = url.rfind('/');
  testing::DatabaseProxy proxy(std::stoi(url.substr(port, path - port)));
  config_.source = url.substr(0, port) + std::to_string(proxy.port()) + url.substr(path);
  gateway_.reset();
  Start();
  proxy.Cut();
  const Status told = LogIn("stranger", "guess").status();
  EXPECT_EQ(told.message(), "the database cannot be reached");
  EXPECT_EQ(told.sqlstate(), "08001");
}

TEST_F(GatewayLogin, NobodyIsLetInWithoutAPassword) {
  const Status nothing = GatewayClient::Connect({gateway_->address(), "", "ann"}).status();
  EXPECT_EQ(nothing.sqlstate(), "28000");
  EXPECT_THAT(nothing.message(), HasSubstr("asks for a password"));
  // The server trusts this role: it would accept any password.
  const std::string trusted = "trusted_" + ann_;
  Admin("CREATE ROLE " + trusted + " LOGIN SUPERUSER PASSWORD 'x'");
  made_.push_back(trusted);
  const Status unproved = LogIn(trusted, "whatever").status();
  EXPECT_EQ(unproved.code(), Code::kPermissionDenied);
  EXPECT_THAT(unproved.message(), HasSubstr("without asking for the password"));
  // An unauthenticated client learns the version, but not where the data is.
  const auto stub = v1::Gateway::NewStub(Channel());
  grpc::ClientContext context;
  v1::GetVersionResponse version;
  ASSERT_TRUE(stub->GetVersion(&context, {}, &version).ok());
  EXPECT_TRUE(version.wants_login());
  EXPECT_EQ(version.source(), "");
}

TEST_F(GatewayLogin, SessionsAreNeverLentToAnother) {
  const auto pid = [this](const std::string& role) {
    RecordingSink sink;
    EXPECT_TRUE(Run(role, "SELECT pg_backend_pid() AS pid", sink).ok());
    return sink.Number("pid");
  };
  const double first = pid(ann_);
  EXPECT_EQ(pid(ann_), first) << "it is kept for the same user";
  EXPECT_NE(pid(bob_), first);
  MustRun(ann_, "SET app.secret = 'x'; CREATE TEMP TABLE mine (x int)");
  RecordingSink sink;
  ASSERT_TRUE(
      Run(bob_, "SELECT coalesce(current_setting('app.secret', true), '') AS s", sink).ok());
  EXPECT_EQ(sink.Cell("s"), Value(std::string()));
}

TEST_F(GatewayLogin, AUserWithoutRightsInTheCatalogUsesIt) {
  TrainAsAnn();
  MustRun(ann_,
          "SELECT a FROM points TO PREDICT p.y USING m; SELECT a FROM points TO PREDICT p.y "
          "USING m; SELECT a, y FROM points TO EVALUATE m INTO judged");
  RecordingSink owner;
  ASSERT_TRUE(
      Run(ann_, "SELECT relowner::regrole::text AS o FROM pg_class WHERE relname = 'p'", owner)
          .ok());
  EXPECT_EQ(owner.Cell("o"), Value(ann_));
  RecordingSink jobs;
  ASSERT_TRUE(Run(ann_, "SHOW JOBS", jobs).ok());
  EXPECT_EQ(jobs.rows.size(), 4U);
  RecordingSink others;
  ASSERT_TRUE(Run(bob_, "SHOW JOBS", others).ok());
  EXPECT_TRUE(others.rows.empty());
}

TEST_F(GatewayLogin, JobsAreAskedForAsTheUser) {
  TrainAsAnn();
  const auto stub = v1::Gateway::NewStub(Channel());
  for (const std::string& role : {ann_, bob_}) {
    const bool hers = role == ann_;
    grpc::ClientContext listing;
    Authorize(listing, role);
    v1::ListJobsResponse list;
    ASSERT_TRUE(stub->ListJobs(&listing, {}, &list).ok());
    EXPECT_EQ(list.jobs_size(), hers ? 1 : 0);
    grpc::ClientContext getting;
    Authorize(getting, role);
    v1::GetJobRequest get;
    get.set_id(1);
    v1::GetJobResponse job;
    EXPECT_EQ(stub->GetJob(&getting, get, &job).error_code(),
              hers ? grpc::StatusCode::OK : grpc::StatusCode::NOT_FOUND);
    grpc::ClientContext cancelling;
    Authorize(cancelling, role);
    v1::CancelJobRequest cancel;
    cancel.set_id(1);
    v1::CancelJobResponse cancelled;
    EXPECT_EQ(stub->CancelJob(&cancelling, cancel, &cancelled).error_code(),
              hers ? grpc::StatusCode::FAILED_PRECONDITION : grpc::StatusCode::NOT_FOUND);
  }
}

TEST_F(GatewayLogin, SqlflowsClientsLogInWithTheirDataSource) {
  const auto stub = proto::SQLFlow::NewStub(Channel());
  const auto run = [&](const std::string& data_source) {
    grpc::ClientContext context;
    proto::Request request;
    request.set_stmts("SELECT current_user");
    request.mutable_session()->set_db_conn_str(data_source);
    request.mutable_session()->set_user_id("root");
    const auto reader = stub->Run(&context, request);
    proto::Response response;
    std::string rows;
    while (reader->Read(&response)) {
      rows += response.ShortDebugString();
    }
    const grpc::Status status = reader->Finish();
    return status.ok() ? rows : "error: " + status.error_message();
  };
  const auto url = [this](const std::string& login) {
    std::string with = database_.url();
    return with.replace(with.find("postgres@"), 8, login);
  };
  EXPECT_THAT(run(url(ann_ + ":of%3A" + ann_ + "%C3%BC")), HasSubstr(ann_));
  EXPECT_THAT(run(url(ann_ + ":wrong")), HasSubstr("28P01"));
  EXPECT_THAT(run(url(ann_)), HasSubstr("asks for the password"));
  EXPECT_THAT(run(""), HasSubstr("asks for a user and a password"));
  const std::string elsewhere = run("postgresql://" + ann_ + ":s3cret@elsewhere/db");
  EXPECT_THAT(elsewhere, HasSubstr("create DB failed"));
  EXPECT_THAT(elsewhere, Not(HasSubstr("s3cret")));
  EXPECT_THAT(elsewhere, Not(HasSubstr("127.0.0.1")));
}

TEST_F(GatewayLogin, AGatewayNeedsNoSuperuser) {
  const std::string own = "gateway_" + ann_;
  const std::string database = database_.url().substr(database_.url().rfind('/') + 1);
  Admin("CREATE ROLE " + own + " LOGIN");
  made_.push_back(own);
  Admin("GRANT CREATE ON DATABASE " + database + " TO " + own);
  config_.source.replace(config_.source.find("postgres@"), 8, own);
  gateway_.reset();
  Start();
  TrainAsAnn();
  MustRun(ann_,
          "SELECT a FROM points TO PREDICT p.y USING m; SELECT a FROM points TO PREDICT p.y "
          "USING m; SHOW JOB 2; DESCRIBE MODEL m");
  EXPECT_EQ(Run(bob_, "DESCRIBE MODEL m").sqlstate(), "42704");
  EXPECT_EQ(Run(bob_, "SHOW JOB 1").sqlstate(), "42704");
  MustRun(ann_, "GRANT USAGE ON MODEL m TO " + bob_);
  MustRun(bob_, "SHOW MODEL m");
  EXPECT_EQ(Run(bob_, "DESCRIBE MODEL m").sqlstate(), "42501");
  EXPECT_EQ(Run(bob_, "DROP MODEL m").sqlstate(), "42501");
  RecordingSink seen;
  ASSERT_TRUE(Run(bob_, "SELECT owner FROM sluice.models", seen).ok());
  EXPECT_EQ(seen.Cell("owner"), Value(ann_));
}

TEST_F(GatewayLogin, GuessesAreSlowedDown) {
  Status status;
  for (int i = 0; i < 8; ++i) {
    status = LogIn(bob_, "guess" + std::to_string(i)).status();
    EXPECT_FALSE(status.ok());
  }
  EXPECT_THAT(status.message(), HasSubstr("too many failed logins"));
}

TEST_F(GatewayLogin, GuessesAreCountedAtAllDoorsTogether) {
  config_.pg = "127.0.0.1:0";
  gateway_.reset();
  Start();
  for (int i = 0; i < 8; ++i) {
    EXPECT_FALSE(LogIn(bob_, "guess" + std::to_string(i)).ok());
  }
  const std::string address = gateway_->pg_address();
  const std::string psql = "PGPASSWORD=guess psql -X -h 127.0.0.1 -p " +
                           address.substr(address.rfind(':') + 1) + " -U " + bob_ +
                           " -d postgres -c 'SELECT 1' 2>&1";
  // On a slow machine the pause may be over before psql asks; the next one is twice as long.
  std::string answer;
  for (int i = 0; i < 4 && !::testing::Value(answer, HasSubstr("too many failed logins")); ++i) {
    EXPECT_FALSE(LogIn(bob_, "guess").ok());
    answer = RunInShell(psql).output;
  }
  EXPECT_THAT(answer, HasSubstr("FATAL:  too many failed logins"));
}

class CountedRows final : public catalog::RowReceiver {
 public:
  Status Header(const Schema& /*schema*/) override { return OkStatus(); }
  Status Rows(const RowBatch& batch) override {
    count += batch.rows;
    return OkStatus();
  }
  size_t count = 0;
};

TEST_F(GatewayLogin, ARoleLeavesPlacesToTheOthers) {
  config_.max_statements = 4;
  Start();
  std::atomic<int> over = 0;
  std::vector<std::jthread> busy;
  for (int i = 0; i < 4; ++i) {  // of which three run, and one waits
    busy.emplace_back([this, &over] {
      EXPECT_EQ(Run(ann_, "SELECT pg_sleep(60)").sqlstate(), "57014");
      ++over;
    });
  }
  const std::string hers =
      "FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep%' AND "
      "usename = '" +
      ann_ + "'";
  const auto count = [&] {
    CountedRows rows;
    EXPECT_TRUE(admin_->Execute("SELECT pid " + hers, &rows, {}).ok());
    return rows.count;
  };
  EXPECT_TRUE(Eventually([&] { return count() >= 3; }));
  const Status refused = Run(ann_, "SHOW JOBS");
  EXPECT_EQ(refused.sqlstate(), "53300");
  EXPECT_THAT(refused.message(), HasSubstr("3 scripts of role " + ann_));
  MustRun(bob_, "SELECT 1");
  MustRun(bob_, "SHOW JOBS");
  EXPECT_EQ(count(), 3U) << "the fourth does not run";
  EXPECT_TRUE(Eventually([&] {
    Admin("SELECT pg_cancel_backend(pid) " + hers);
    return over == 4;
  }));
}

TEST_F(GatewayLogin, CheckpointsAreARolesUnderAnotherNameToo) {
  std::string root = ::testing::TempDir() + "/sluice-checkpoints-XXXXXX";
  ASSERT_NE(mkdtemp(root.data()), nullptr);
  config_.checkpoint_root = root;
  gateway_.reset();
  Start();
  MustRun(ann_,
          "CREATE TABLE points AS SELECT i % 10 AS a, i % 2 AS y FROM generate_series(1, 200) i");
  const auto train = [](const std::string& model) {
    return "SELECT a, y FROM points TO TRAIN DNNClassifier WITH model.hidden_units=[2],"
           " train.epoch=1, train.save_checkpoints_steps=1, engine.checkpoint_dir='" +
           model + "' LABEL y INTO " + model;
  };
  MustRun(ann_, train("m"));
  const std::string renamed = ann_ + "_renamed";
  const std::string password = PasswordOf(ann_);
  Admin("ALTER ROLE " + ann_ + " RENAME TO " + renamed);
  RecordingSink sink;
  const auto client = LogIn(renamed, password);
  ASSERT_TRUE(client.ok()) << client.status().ToString();
  const Status trained = (*client)->Run("SET search_path = " + ann_ + "; " + train("n"), {}, sink);
  EXPECT_TRUE(trained.ok()) << trained.ToString();
  Admin("ALTER ROLE " + renamed + " RENAME TO " + ann_);
  MustRun(bob_, "SELECT 1");
  std::vector<std::string> folders;
  for (const auto& folder : std::filesystem::directory_iterator(root)) {
    folders.push_back(folder.path().filename());
    EXPECT_TRUE(std::filesystem::exists(folder.path() / "m"));
    EXPECT_TRUE(std::filesystem::exists(folder.path() / "n"));
  }
  EXPECT_THAT(folders, ::testing::ElementsAre(::testing::StartsWith("role-")));
  std::filesystem::remove_all(root);
}

TEST_F(GatewayLogin, FilesOfModelsAreARoles) {
  std::string root = ::testing::TempDir() + "/sluice-exports-XXXXXX";
  ASSERT_NE(mkdtemp(root.data()), nullptr);
  config_.export_root = root;
  gateway_.reset();
  Start();
  TrainAsAnn();
  MustRun(ann_, "EXPORT MODEL m TO 'm.sluice'");
  RecordingSink sink;
  EXPECT_EQ(Run(bob_, "EXPORT MODEL m TO 'm.sluice'", sink).sqlstate(), "42704");
  EXPECT_EQ(Run(bob_, "IMPORT MODEL FROM 'm.sluice'", sink).sqlstate(), "58P01");
  std::vector<std::string> folders;
  for (const auto& folder : std::filesystem::directory_iterator(root)) {
    folders.push_back(folder.path().filename());
  }
  EXPECT_THAT(folders, ::testing::Contains(::testing::StartsWith("role-")));
  const std::string hers = folders.front();
  EXPECT_FALSE(Run(bob_, "IMPORT MODEL FROM '../" + hers + "/m.sluice'", sink).ok());

  // Who may inspect it may export it; what is imported belongs to who imports it.
  MustRun(ann_, "GRANT USAGE ON MODEL m TO " + bob_);
  EXPECT_EQ(Run(bob_, "EXPORT MODEL m TO 'm.sluice'", sink).sqlstate(), "42501");
  MustRun(ann_, "GRANT INSPECT ON MODEL m TO " + bob_);
  MustRun(bob_, "EXPORT MODEL m TO 'm.sluice'");
  EXPECT_EQ(Run(bob_, "IMPORT MODEL FROM 'm.sluice'", sink).sqlstate(), "42501") << "m is Ann's";
  MustRun(bob_, "IMPORT MODEL FROM 'm.sluice' INTO bobs");
  RecordingSink models;
  ASSERT_TRUE(Run(bob_, "SELECT owner FROM sluice.models WHERE name = 'bobs'", models).ok());
  EXPECT_EQ(models.Cell("owner"), Value(bob_));
  EXPECT_EQ(Run(ann_, "SHOW MODEL bobs", sink).sqlstate(), "42704") << "grants do not travel";
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace sluice::server

#include "elastic/transport/metrics_page.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <string>
#include <string_view>
#include <vector>

namespace sluice::elastic {
namespace {

std::string AnswerOn(const Socket& socket) {
  pollfd entry{socket.descriptor(), POLLIN, 0};
  std::string answer;
  char buffer[4096];
  for (ssize_t got = -1; got != 0;) {
    if (poll(&entry, 1, 5'000) <= 0) {
      return answer + "(nothing more)";
    }
    got = recv(socket.descriptor(), buffer, sizeof(buffer), 0);
    if (got < 0) {
      return answer + "(broken)";
    }
    answer.append(buffer, static_cast<size_t>(got));
  }
  return answer;
}

std::string Ask(int port, const std::string& request) {
  const Socket socket = ConnectTo(fmt::format("tcp:127.0.0.1:{}", port)).value();
  pollfd entry{socket.descriptor(), POLLOUT, 0};
  poll(&entry, 1, 5'000);
  send(socket.descriptor(), request.data(), request.size(), MSG_NOSIGNAL);
  return AnswerOn(socket);
}

TEST(MetricsText, AHistogramCountsUpToEachBound) {
  Histogram durations({0.1, 3});
  for (const double value : {0.1, 0.5, 2.5, 7.0}) {
    durations.Add(value);
  }
  MetricsText text;
  text.Add("sluice_seconds", "Seconds.", durations);
  EXPECT_EQ(text.text(),
            "# HELP sluice_seconds Seconds.\n"
            "# TYPE sluice_seconds histogram\n"
            "sluice_seconds_bucket{le=\"0.1\"} 1\n"
            "sluice_seconds_bucket{le=\"3\"} 3\n"
            "sluice_seconds_bucket{le=\"+Inf\"} 4\n"
            "sluice_seconds_sum 10.1\n"
            "sluice_seconds_count 4\n");
}

TEST(MetricsText, IsPrometheus) {
  MetricsText text;
  text.Add("sluice_pods", MetricsText::Kind::kGauge, "Pods.", {{"role", "a\"b\\\n"}}, 2);
  text.Add("sluice_pods", MetricsText::Kind::kGauge, "Pods.", {{"role", "ps"}, {"x", "y"}}, 0.5);
  text.Add("sluice_rows_total", MetricsText::Kind::kCounter, "Rows.", {}, 12'345'678);
  EXPECT_EQ(text.text(),
            "# HELP sluice_pods Pods.\n"
            "# TYPE sluice_pods gauge\n"
            "sluice_pods{role=\"a\\\"b\\\\\\n\"} 2\n"
            "sluice_pods{role=\"ps\",x=\"y\"} 0.5\n"
            "# HELP sluice_rows_total Rows.\n"
            "# TYPE sluice_rows_total counter\n"
            "sluice_rows_total 12345678\n");
}

TEST(MetricsPageTest, AnswersOnePage) {
  const auto page =
      MetricsPage::Start("127.0.0.1:0", {[] { return std::string("a 1\n"); }}).value();
  const std::string answer = Ask(page->port(), "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(answer.substr(0, 17), "HTTP/1.1 200 OK\r\n");
  EXPECT_NE(answer.find("Content-Length: 4\r\n"), std::string::npos);
  EXPECT_EQ(answer.substr(answer.find("\r\n\r\n")), "\r\n\r\na 1\n");
  EXPECT_NE(Ask(page->port(), "GET / HTTP/1.1\r\n\r\n").find(" 404 "), std::string::npos);
  EXPECT_NE(Ask(page->port(), "POST /metrics HTTP/1.1\r\n\r\n").find(" 405 "), std::string::npos);
}

TEST(MetricsPageTest, SaysWhetherItLivesAndIsReady) {
  Status ready;
  const auto page =
      MetricsPage::Start("127.0.0.1:0", {[] { return std::string(); }, [&ready] { return ready; }})
          .value();
  EXPECT_NE(Ask(page->port(), "GET /readyz HTTP/1.1\r\n\r\n").find(" 200 "), std::string::npos);
  ready = Unavailable("the database does not answer");
  const std::string answer = Ask(page->port(), "GET /readyz HTTP/1.1\r\n\r\n");
  EXPECT_NE(answer.find(" 503 "), std::string::npos);
  EXPECT_EQ(answer.find("database"), std::string::npos) << "a page that anybody may read";
  EXPECT_NE(Ask(page->port(), "GET /healthz HTTP/1.1\r\n\r\n").find(" 200 "), std::string::npos);
}

// As many as there is room for, and more; half a request is as good as none.
TEST(MetricsPageTest, StrangersHoldNobodyUp) {
  const auto page =
      MetricsPage::Start("127.0.0.1:0", {[] { return std::string("a 1\n"); }}).value();
  std::vector<Socket> strangers;
  for (int i = 0; i < 50; ++i) {
    strangers.push_back(ConnectTo(fmt::format("tcp:127.0.0.1:{}", page->port())).value());
    pollfd entry{strangers.back().descriptor(), POLLOUT, 0};
    poll(&entry, 1, 5'000);
    EXPECT_EQ(send(strangers.back().descriptor(), "GET /metr", 9, MSG_NOSIGNAL), 9);
  }
  EXPECT_NE(Ask(page->port(), "GET /healthz HTTP/1.1\r\n\r\n").find(" 200 "), std::string::npos);
}

// An operator's probe elsewhere, that came first and is slow, has its answer.
TEST(MetricsPageTest, ManyOfOneAddressTakeNoPlaceFromOthers) {
  const auto page =
      MetricsPage::Start("127.0.0.1:0", {[] { return std::string("a 1\n"); }}).value();
  const auto connect_from = [&page](const char* from, std::string_view says) {
    Socket made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    inet_pton(AF_INET, from, &at.sin_addr);
    EXPECT_EQ(bind(made.descriptor(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    at.sin_port = htons(static_cast<in_port_t>(page->port()));
    inet_pton(AF_INET, "127.0.0.1", &at.sin_addr);
    EXPECT_EQ(connect(made.descriptor(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    send(made.descriptor(), says.data(), says.size(), MSG_NOSIGNAL);
    return made;
  };
  std::string answer;
  for (int tries = 0; tries < 20 && answer.find(" 200 ") == std::string::npos; ++tries) {
    const Socket probe = connect_from("127.0.0.2", "GET /healthz HTTP/1.1\r\n");
    std::vector<Socket> strangers;
    for (int i = 0; i < 50; ++i) {
      strangers.push_back(connect_from("127.0.0.1", "GET /metr"));
    }
    AnswerOn(strangers[0]);  // the oldest makes room
    send(probe.descriptor(), "\r\n", 2, MSG_NOSIGNAL);
    answer = AnswerOn(probe);  // "" on a machine so slow that its time was up
  }
  EXPECT_NE(answer.find(" 200 "), std::string::npos) << answer;
}

// A client that sends an incomplete or too long request is disconnected; the next one is answered.
TEST(MetricsPageTest, StrangersHoldNobodyUpForLong) {
  const auto page =
      MetricsPage::Start("127.0.0.1:0", {[] { return std::string("a 1\n"); }}).value();
  EXPECT_EQ(Ask(page->port(), "GET /metr"), "");
  const std::string endless = Ask(page->port(), std::string(20'000, 'x'));
  EXPECT_TRUE(endless.empty() || endless == "(broken)") << endless;
  EXPECT_NE(Ask(page->port(), "GET /metrics HTTP/1.0\r\n\r\n").find("a 1"), std::string::npos);
}

}  // namespace
}  // namespace sluice::elastic

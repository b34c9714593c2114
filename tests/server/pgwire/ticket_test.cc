#include "server/pgwire/ticket.h"

#include <gtest/gtest.h>

namespace sluice::server::pgwire {
namespace {

const TicketLogin kLogin = {"ann", "sales", {std::string("key\0with NUL", 12), "server"}};

TEST(TicketTest, SaysWhoAndWhereToItsOwnOfficeOnly) {
  const TicketOffice office;
  const std::string ticket = office.Issue(kLogin);
  const Result<TicketLogin> read = office.Read(ticket);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->user, kLogin.user);
  EXPECT_EQ(read->database, kLogin.database);
  EXPECT_EQ(read->keys.client_key, kLogin.keys.client_key);
  EXPECT_EQ(read->keys.server_key, kLogin.keys.server_key);
  EXPECT_NE(office.Issue(kLogin), ticket);  // two tickets reveal nothing
  const TicketOffice other;
  EXPECT_EQ(other.Read(ticket).status().sqlstate(), "28000");
}

TEST(TicketTest, NothingOfItCanBeChanged) {
  const TicketOffice office;
  const std::string ticket = office.Issue(kLogin);
  for (size_t at = 0; at < ticket.size(); ++at) {
    std::string changed = ticket;
    changed[at] = changed[at] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(office.Read(changed).ok()) << at;
    EXPECT_FALSE(office.Read(ticket.substr(0, at)).ok()) << at;
  }
}

}  // namespace
}  // namespace sluice::server::pgwire

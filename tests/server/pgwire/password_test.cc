#include "server/pgwire/password.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::server::pgwire {
namespace {

TEST(Password, WhatSaslprepLeavesAsItIs) {
  for (const char* same :
       {"", "pencil", "with spaces and\ttab", "\x01\x7F", "Grüße", "пароль", "λέξη", "パスワード",
        "비밀번호", "密码", "סיסמה", "“quoted” – €", "caf\xE9 is no UTF-8", "\xC0\xAF",
        "\xF4\x90\x80\x80", "\xED\xA0\x80", "emoji 😀 and ½", "ü\x01"}) {
    const auto prepared = PreparePassword(same);
    ASSERT_TRUE(prepared.ok()) << same << prepared.status().ToString();
    EXPECT_EQ(*prepared, same);
  }
}

TEST(Password, SpacesAndInvisibleCharactersAreMapped) {
  EXPECT_EQ(PreparePassword("a\u00A0b\u3000ü").value(), "a b ü");
  EXPECT_EQ(PreparePassword("pass\u00ADwo\uFEFFrd").value(), "password");
  EXPECT_EQ(PreparePassword("a\u200Bb").value(), "a b");
  EXPECT_EQ(PreparePassword("\u00AD").value(), "\u00AD");  // nothing would be left
}

TEST(Password, WhatIsNotKnownHereIsTold) {
  for (const char* unknown : {"½", "ﬁsh", "u\u0308", "²", "ｱ", "א\u00A0", "Ⅳ"}) {
    const auto prepared = PreparePassword(unknown);
    ASSERT_FALSE(prepared.ok()) << unknown;
    EXPECT_EQ(prepared.status().sqlstate(), "0A000");
    EXPECT_EQ(prepared.status().ToString().find(unknown), std::string::npos);
  }
}

TEST(Password, TheAnswerToMd5) {
  EXPECT_EQ(Md5Password("me", "secret", {'\x01', '\x02', '\0', '\xFF'}),
            "md51d633cd980efd5f6eb9fd7ef06227432");
}

}  // namespace
}  // namespace sluice::server::pgwire

#include "coordinator/shell/identity.h"

#include <gtest/gtest.h>

namespace loopfleet::coordinator {
namespace {

using wire::Principal;
using wire::Role;

wire::Sender SentBy(Role role, const std::string& name) {
  return {.standing = wire::Sender::Standing::kAuthorized,
          .principal = {.role = role, .name = name},
          .key = "key"};
}

// Databases store the id, so it must be the same in every version.
TEST(Identity, AClientIsItsNameForEver) {
  EXPECT_EQ(ClientIdOf({.role = Role::kClient, .name = "alice"}),
            ClientIdOf({.role = Role::kClient, .name = "alice"}));
  EXPECT_NE(ClientIdOf({.role = Role::kClient, .name = "alice"}),
            ClientIdOf({.role = Role::kClient, .name = "bob"}));
  EXPECT_NE(ClientIdOf({.role = Role::kClient, .name = "alice"}),
            ClientIdOf({.role = Role::kAdmin, .name = "alice"}));
  EXPECT_FALSE(ClientIdOf({.role = Role::kClient, .name = "a"}).is_nil());
}

TEST(Identity, WhatAKeyedPeerSaysOfItselfDoesNotCount) {
  wire::ClientHello hello{.client = Uuid::Random()};
  Identify(SentBy(Role::kClient, "alice"), hello);
  EXPECT_EQ(hello.client, ClientIdOf({.role = Role::kClient, .name = "alice"}));

  const Uuid said = Uuid::Random();
  wire::WorkerHello first{.worker = said, .name = "host pid 1"};
  wire::WorkerHello second = first;
  Identify(SentBy(Role::kWorker, "node1"), first);
  Identify(SentBy(Role::kWorker, "node2"), second);
  EXPECT_NE(first.worker, second.worker) << "nobody takes another key's place";
  EXPECT_NE(first.worker, said);
  EXPECT_EQ(first.name, "node1/host pid 1");
  EXPECT_EQ(first.labels, std::vector<std::string>{"key=node1"});
  EXPECT_EQ(first.worker, WorkerIdOf({.role = Role::kWorker, .name = "node1"}, said));
}

TEST(Identity, WithoutKeysItIsAllThereIs) {
  const Uuid said = Uuid::Random();
  wire::ClientHello client{.client = said};
  Identify({}, client);
  EXPECT_EQ(client.client, said);
  wire::WorkerHello worker{.worker = said, .name = "host pid 1"};
  Identify({}, worker);
  EXPECT_EQ(worker.worker, said);
  EXPECT_EQ(worker.name, "host pid 1");
  EXPECT_TRUE(worker.labels.empty());
  EXPECT_EQ(RoleOf({}), Role::kAdmin);
  EXPECT_FALSE(IsRevoked({}));
}

TEST(Identity, TheRoleIsTheKeys) {
  EXPECT_EQ(RoleOf(SentBy(Role::kClient, "alice")), Role::kClient);
  EXPECT_EQ(RoleOf(SentBy(Role::kAdmin, "root")), Role::kAdmin);
  EXPECT_TRUE(IsRevoked({.standing = wire::Sender::Standing::kRevoked}));
}

}  // namespace
}  // namespace loopfleet::coordinator

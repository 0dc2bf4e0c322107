#include "common/llvm_passes/pass_text.h"

#include <gtest/gtest.h>

namespace loopfleet::passes {
namespace {

std::string RefusalOf(std::string_view text) {
  const auto checked = CheckPassText(text);
  return checked ? "" : checked.error();
}

TEST(PassText, KnownPassesMayHaveOtherParameters) {
  for (const char* text :
       {"function(simplifycfg)", "function(simplifycfg<bonus-inst-threshold=3>)", "cgscc(inline)",
        "function(instcombine)", "function(loop-unroll<O3>)", "function(constraint-elimination)",
        "function(loop-mssa(lnicm<allowspeculation>))", "default<O1>"}) {
    EXPECT_EQ(RefusalOf(text), "") << text;
  }
}

TEST(PassText, WhatPrintsCrashesOrTouchesFilesIsRefused) {
  for (const char* text :
       {"print", "print<domtree>", "function(print<loops>)", "function(dot-cfg)", "view-callgraph",
        "function(view-cfg)", "trigger-crash-module", "function(trigger-crash-function)",
        "pgo-instr-use", "memprof-use<profile-filename=/etc/passwd>", "embed-bitcode", "verify",
        "require<globals-aa>", "function-import", "sample-profile", "default<O4>"}) {
    EXPECT_NE(RefusalOf(text), "") << text;
  }
}

TEST(PassText, NestingIsWrittenOutAsTheTableHasIt) {
  EXPECT_EQ(RefusalOf("gvn"), "'gvn' is not how this pass is nested; write function(gvn)");
  EXPECT_EQ(RefusalOf("function(gvm)"), "unknown pass 'function(gvm)'; nearest: function(gvn)");
  EXPECT_NE(RefusalOf("function(loop(licm))"), "");  // parses in LLVM and kills the process
  EXPECT_NE(RefusalOf("function(gvn,dce)"), "");
  EXPECT_NE(RefusalOf("function(gvn"), "");
  EXPECT_NE(RefusalOf(""), "");
}

TEST(PassText, ParametersAreWordsOfThePassAlone) {
  EXPECT_NE(RefusalOf("function(simplifycfg<a/b>)"), "");
  EXPECT_NE(RefusalOf("function(simplifycfg<a'b>)"), "");
  EXPECT_NE(RefusalOf("function<eager-inv>(gvn)"), "");
  EXPECT_NE(RefusalOf("function(simplifycfg<a>)<b>"), "");
  EXPECT_NE(RefusalOf("function(gvn<" + std::string(kLongestPassText, 'a') + ">)"), "");
}

}  // namespace
}  // namespace loopfleet::passes

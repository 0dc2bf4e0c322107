#include "worker/gpu/codegen/device_abi.h"

#include <fmt/format.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/GlobalVariable.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Module.h>

#include <cstddef>

#include "kernel/kernel.h"

namespace loopfleet::worker {
namespace {

using llvm::Function;
using llvm::FunctionType;
using llvm::GlobalValue;
using llvm::IRBuilderBase;
using llvm::Module;
using llvm::PointerType;
using llvm::Type;
using llvm::Value;

// Address spaces of NVPTX.
constexpr unsigned kGlobalSpace = 1;
constexpr unsigned kSharedSpace = 3;
constexpr unsigned kLocalSpace = 5;

llvm::AllocaInst* EntryBytes(IRBuilderBase& builder, std::int64_t bytes) {
  Function* function = builder.GetInsertBlock()->getParent();
  llvm::IRBuilder<> entry(&function->getEntryBlock(), function->getEntryBlock().begin());
  auto* type = llvm::ArrayType::get(entry.getInt8Ty(), static_cast<std::uint64_t>(bytes));
  llvm::AllocaInst* place = entry.CreateAlloca(type);
  place->setAlignment(llvm::Align(16));
  return place;
}

class Cuda final : public DeviceAbi {
 public:
  Function* AddStage(Module& module, const StageFunction& stage) override {
    llvm::LLVMContext& context = module.getContext();
    const std::vector<Type*> types(stage.buffers, PointerType::get(context, kGlobalSpace));
    auto* type = FunctionType::get(Type::getVoidTy(context), types, false);
    Function* function =
        Function::Create(type, GlobalValue::ExternalLinkage, StageSymbol(stage.stage), module);
    for (llvm::Argument& argument : function->args()) {
      argument.addAttr(llvm::Attribute::NoAlias);
      argument.addAttr(llvm::Attribute::getWithAlignment(context, llvm::Align(64)));
      if (argument.getArgNo() < stage.inputs) argument.addAttr(llvm::Attribute::ReadOnly);
    }
    Annotate(*function, "kernel", 1);
    Annotate(*function, "maxntidx", stage.block_threads);
    return function;
  }

  void Finish(Module&, const std::vector<Function*>&, std::uint32_t) override {}

  Value* Thread(IRBuilderBase& builder) override {
    return builder.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {}, {});
  }
  Value* Block(IRBuilderBase& builder) override {
    return builder.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, {}, {});
  }
  void Wait(IRBuilderBase& builder) override {
    builder.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {});
  }

  Value* Shared(IRBuilderBase& builder, std::int64_t bytes) override {
    Function* function = builder.GetInsertBlock()->getParent();
    auto* type = llvm::ArrayType::get(builder.getInt8Ty(), static_cast<std::uint64_t>(bytes));
    auto* memory =
        new llvm::GlobalVariable(*function->getParent(), type, false, GlobalValue::InternalLinkage,
                                 llvm::UndefValue::get(type), function->getName() + "_shared",
                                 nullptr, GlobalValue::NotThreadLocal, kSharedSpace);
    memory->setAlignment(llvm::Align(16));
    return memory;
  }

  Value* Local(IRBuilderBase& builder, std::int64_t bytes) override {
    return builder.CreateAddrSpaceCast(EntryBytes(builder, bytes),
                                       PointerType::get(builder.getContext(), kLocalSpace));
  }

 private:
  static void Annotate(Function& function, const char* what, std::uint32_t value) {
    Module& module = *function.getParent();
    llvm::LLVMContext& context = module.getContext();
    auto* number = llvm::ConstantInt::get(Type::getInt32Ty(context), value);
    module.getOrInsertNamedMetadata("nvvm.annotations")
        ->addOperand(llvm::MDNode::get(
            context, {llvm::ConstantAsMetadata::get(&function), llvm::MDString::get(context, what),
                      llvm::ConstantAsMetadata::get(number)}));
  }
};

class Host final : public DeviceAbi {
 public:
  Function* AddStage(Module& module, const StageFunction& stage) override {
    llvm::LLVMContext& context = module.getContext();
    std::vector<Type*> types(stage.buffers + 1, PointerType::get(context, 0));
    auto* type = FunctionType::get(Type::getVoidTy(context), types, false);
    return Function::Create(type, GlobalValue::InternalLinkage, StageSymbol(stage.stage), module);
  }

  void Finish(Module& module, const std::vector<Function*>& stages,
              std::uint32_t buffers) override {
    llvm::LLVMContext& context = module.getContext();
    Type* pointer = PointerType::get(context, 0);
    auto* type = FunctionType::get(Type::getVoidTy(context), {pointer}, false);
    Function* entry = Function::Create(type, GlobalValue::ExternalLinkage, kKernelSymbol, module);
    llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "entry", entry));
    std::vector<Value*> arguments;
    for (std::uint32_t i = 0; i <= buffers; ++i) {
      arguments.push_back(
          builder.CreateLoad(pointer, builder.CreateConstGEP1_32(pointer, entry->getArg(0), i)));
    }
    Value* wanted =
        Field(builder, arguments.back(), offsetof(HostThread, stage), builder.getInt32Ty());
    for (std::uint32_t i = 0; i < stages.size(); ++i) {
      auto* call = llvm::BasicBlock::Create(context, "stage", entry);
      auto* next = llvm::BasicBlock::Create(context, "next", entry);
      builder.CreateCondBr(builder.CreateICmpEQ(wanted, builder.getInt32(i)), call, next);
      builder.SetInsertPoint(call);
      builder.CreateCall(stages[i], arguments);
      builder.CreateRetVoid();
      builder.SetInsertPoint(next);
    }
    builder.CreateRetVoid();
  }

  Value* Thread(IRBuilderBase& builder) override {
    return Field(builder, Self(builder), offsetof(HostThread, thread), builder.getInt32Ty());
  }
  Value* Block(IRBuilderBase& builder) override {
    return Field(builder, Self(builder), offsetof(HostThread, block), builder.getInt32Ty());
  }
  void Wait(IRBuilderBase& builder) override {
    Value* place =
        builder.CreateConstGEP1_64(builder.getInt8Ty(), Self(builder), offsetof(HostThread, place));
    builder.CreateStore(builder.getInt32(++places_), place);
    Value* wait = Field(builder, Self(builder), offsetof(HostThread, wait), builder.getPtrTy());
    auto* type = FunctionType::get(builder.getVoidTy(), {builder.getPtrTy()}, false);
    builder.CreateCall(type, wait, {Self(builder)});
  }
  Value* Shared(IRBuilderBase& builder, std::int64_t) override {
    return Field(builder, Self(builder), offsetof(HostThread, shared), builder.getPtrTy());
  }
  Value* Local(IRBuilderBase& builder, std::int64_t bytes) override {
    return EntryBytes(builder, bytes);
  }

 private:
  static Value* Self(IRBuilderBase& builder) {
    Function* function = builder.GetInsertBlock()->getParent();
    return function->getArg(function->arg_size() - 1);
  }
  static Value* Field(IRBuilderBase& builder, Value* self, std::size_t offset, Type* type) {
    return builder.CreateLoad(type, builder.CreateConstGEP1_64(builder.getInt8Ty(), self, offset));
  }

  std::uint32_t places_ = 0;
};

}  // namespace

std::unique_ptr<DeviceAbi> CudaAbi() { return std::make_unique<Cuda>(); }
std::unique_ptr<DeviceAbi> HostAbi() { return std::make_unique<Host>(); }

std::string StageSymbol(std::uint32_t stage) { return fmt::format("{}_{}", kKernelSymbol, stage); }

}  // namespace loopfleet::worker

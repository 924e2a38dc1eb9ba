# SPDX-License-Identifier: Apache-2.0
"""Libraries for images, as their READMEs use them: vision.py NAME"""
import sys

import torch


def step(model, loss):
    loss.backward()
    torch.optim.AdamW(model.parameters()).step()


def detection():
    import torchvision
    for name in ("fasterrcnn_resnet50_fpn", "maskrcnn_resnet50_fpn"):
        model = torchvision.models.get_model(
            name, weights=None, weights_backbone=None).cuda()
        images = [torch.rand(3, 320, 400, device="cuda") for _ in range(2)]
        targets = [{"boxes": torch.tensor([[10., 20, 90, 110]], device="cuda"),
                    "labels": torch.ones(1, device="cuda").long(),
                    "masks": torch.ones(1, 320, 400, device="cuda").byte()}
                   for _ in images]
        step(model, sum(model(images, targets).values()))
        model.eval()
        print(name, len(model(images)))


def clip():
    import clip as library
    model = library.model.CLIP(512, 224, 12, 768, 32, 77, 49408, 512, 8,
                               12).cuda()
    image, text = model(torch.randn(4, 3, 224, 224, device="cuda"),
                        library.tokenize(["a dog"] * 4).cuda())
    step(model, torch.nn.functional.cross_entropy(
        image, torch.arange(4, device="cuda")) + text.mean())
    print("logits", image.shape)


def dinov2():
    import hubconf
    model = hubconf.dinov2_vits14(pretrained=False).cuda()
    found = model(torch.randn(4, 3, 224, 224, device="cuda"))
    step(model, found.mean())
    print("features", found.shape)


def segmentation():
    import kornia
    import segmentation_models_pytorch as smp
    model = smp.Unet("resnet34", encoder_weights=None, classes=3).cuda()
    change = torch.nn.Sequential(
        kornia.augmentation.RandomHorizontalFlip(),
        kornia.augmentation.RandomAffine(20.0),
        kornia.augmentation.ColorJitter(0.2, 0.2, 0.2, 0.1))
    images = change(torch.rand(4, 3, 256, 256, device="cuda"))
    loss = smp.losses.DiceLoss("multiclass")
    step(model, loss(model(images), torch.randint(
        0, 3, (4, 256, 256), device="cuda")))
    print("images", images.shape)


def monai():
    from monai.inferers import sliding_window_inference
    from monai.losses import DiceCELoss
    from monai.networks.nets import SwinUNETR, UNet
    nets = [UNet(3, 1, 2, (16, 32, 64), (2, 2), num_res_units=2),
            SwinUNETR(in_channels=1, out_channels=2, feature_size=12)]
    for net in nets:
        net.cuda()
        step(net, DiceCELoss(to_onehot_y=True, softmax=True)(
            net(torch.randn(1, 1, 64, 64, 64, device="cuda")),
            torch.randint(0, 2, (1, 1, 64, 64, 64), device="cuda")))
    with torch.no_grad():
        print("volume", sliding_window_inference(
            torch.randn(1, 1, 96, 96, 96, device="cuda"), (64, 64, 64), 2,
            nets[0]).shape)


def yolo():
    from ultralytics import YOLO
    YOLO("yolo11n.yaml").train(data="data/data.yaml", epochs=1, batch=4,
                               imgsz=320, workers=1, amp=False, plots=False)
    print("trained")


def diffusion():
    from denoising_diffusion_pytorch import GaussianDiffusion, Trainer, Unet
    model = Unet(dim=32, dim_mults=(1, 2, 4), flash_attn=False)
    Trainer(GaussianDiffusion(model, image_size=64, timesteps=50,
                              sampling_timesteps=5), "data",
            train_batch_size=16, train_num_steps=2, save_and_sample_every=2,
            num_samples=4, calculate_fid=False, amp=True,
            num_fid_samples=0).train()
    print("trained")


if __name__ == "__main__":
    globals()[sys.argv[1]]()

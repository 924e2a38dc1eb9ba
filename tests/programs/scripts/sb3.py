# SPDX-License-Identifier: Apache-2.0
"""Stable-Baselines3's README: PPO on CartPole, SAC on Pendulum."""
from stable_baselines3 import PPO, SAC

PPO("MlpPolicy", "CartPole-v1", n_steps=64, device="cuda").learn(128)
print("PPO learned")
SAC("MlpPolicy", "Pendulum-v1", device="cuda", learning_starts=20).learn(60)
print("SAC learned")
